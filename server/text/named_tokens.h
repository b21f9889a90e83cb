// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/io/json_file.h"
#include "kernels/io/json_folder.h"
#include "server/text/base/literals.h"
#include "server/text/sentencepiece/families.h"

namespace attendant {

// The tokens that a class of transformers finds in texts where no file names others.
struct ClassTokens {
  absl::Span<const FamilyRole> roles{};
  bool mask_strips_left = false;
  std::vector<std::string> extras{};  // unless a file says something of more tokens
};

// The tokens that stand literally in texts, as the class and the files beside tokenizer.json name
// them: `tokenizer_config`, special_tokens_map.json and added_tokens.json, the older two as far as
// they count. Of several with the same text the first counts. INVALID_ARGUMENT for what is
// malformed.
absl::StatusOr<std::vector<Literal>> ReadNamedTokens(const JsonFolder& folder,
                                                     const JsonNode& tokenizer_config,
                                                     const ClassTokens& own);

}  // namespace attendant
