// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/io/json_file.h"

namespace attendant {

// The fields of tokenizer_config.json of which DebertaV2Tokenizer of transformers 5 makes its
// normalizer and its pre-tokenizer, whatever tokenizer.json or the sentencepiece model says.
struct DebertaOptions {
  bool add_prefix_space = true;
  bool do_lower_case = false;
  bool split_by_punct = false;
};

// INVALID_ARGUMENT for a field of another type.
absl::StatusOr<DebertaOptions> ReadDebertaOptions(const JsonNode& tokenizer_config);

// The parts of a tokenizer.json, as JSON.
std::string DebertaNormalizer(const DebertaOptions& options);
std::string DebertaPreTokenizer(const DebertaOptions& options);
std::string DebertaMetaspace(const DebertaOptions& options);

// A Metaspace, pre-tokenizer or decoder. `prepend_scheme`: always, first or never.
std::string MetaspaceJson(absl::string_view prepend_scheme);

}  // namespace attendant
