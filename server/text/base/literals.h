// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/io/json_file.h"

namespace attendant {

// A special token, or another one that is found literally, as the files beside tokenizer.json name
// it.
struct Literal {
  std::string text;
  bool special = true;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false;
};

// A JSON string.
std::string InQuotes(absl::string_view text);
// An element of tokenizer.json's added_tokens.
std::string AddedTokenJson(int64_t id, const Literal& literal);

inline constexpr absl::string_view kMaskRole = "mask_token";
// The fields of special tokens, in the order in which transformers adds them.
inline constexpr std::array<absl::string_view, 7> kTokenRoles = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", kMaskRole};
inline constexpr absl::string_view kAddedTokens = "added_tokens_decoder";
// The fields of lists of more tokens: the older name counts where the newer one has no tokens.
inline constexpr absl::string_view kExtraTokens = "extra_special_tokens";
inline constexpr absl::string_view kOldExtraTokens = "additional_special_tokens";

// INVALID_ARGUMENT, naming the place, for what is malformed: all of these.

// Reads a token from a string, or from an object with flags. The text may be empty, which means no
// token.
absl::StatusOr<Literal> ReadLiteral(const JsonNode& token);

// The text of one in `field` of `file`. Without the field, `text` stays as it is.
absl::Status ReadTokenText(const JsonNode& file, absl::string_view field,
                           std::optional<std::string>& text);

// Reads tokens from a list, or from an object that names them. UNIMPLEMENTED for an object in a
// list that is no AddedToken.
absl::StatusOr<std::vector<Literal>> ReadLiterals(const JsonNode& tokens);

// {"128000": {"content": "[MASK]", ...}}: added_tokens_decoder of tokenizer_config.json, by id.
absl::StatusOr<std::map<int64_t, Literal>> ReadAddedLiterals(const JsonNode& config);

// More tokens of tokenizer_config.json and special_tokens_map.json.
absl::StatusOr<std::vector<Literal>> ReadExtraLiterals(const JsonNode& config, const JsonNode& map);

// True if one of the files has the field of more tokens, even with an empty list.
absl::StatusOr<bool> SayExtraLiterals(const JsonNode& config, const JsonNode& map);

}  // namespace attendant
