// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/io/json_file.h"
#include "server/text/sentencepiece/families.h"

namespace attendant {

// The fields of tokenizer_config.json of which a family's class of transformers 5 makes its
// normalizer and its pre-tokenizer, whatever tokenizer.json or the sentencepiece model says.
struct FamilyOptions {
  bool add_prefix_space = true;
  // Of a family that cleans spaces, and then false by default, or letters, and then true.
  std::optional<bool> do_lower_case{};
  bool split_by_punct = false;  // of a family that cleans spaces
  bool keep_accents = false;    // of one that cleans letters
};

// INVALID_ARGUMENT for a field of another type.
absl::StatusOr<FamilyOptions> ReadFamilyOptions(const JsonNode& tokenizer_config);

// The number of <extra_id_N> tokens. INVALID_ARGUMENT for too many.
absl::StatusOr<int64_t> ReadExtraIds(const JsonNode& tokenizer_config,
                                     const SentencePieceFamily& family);

// The parts of a tokenizer.json as the class makes them, as JSON. `charsmap`: the model's rules for
// characters in base64, or empty for none.
std::string FamilyNormalizer(const SentencePieceFamily& family, const FamilyOptions& options,
                             absl::string_view charsmap);
std::string FamilyPreTokenizer(const SentencePieceFamily& family, const FamilyOptions& options);
std::string FamilyDecoder(const SentencePieceFamily& family, const FamilyOptions& options);
// `id_of`: the id of the token in a role.
std::string FamilyTemplate(const SentencePieceFamily& family,
                           absl::FunctionRef<int64_t(const FamilyRole&)> id_of);

}  // namespace attendant
