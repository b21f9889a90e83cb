// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/token_files.h"

#include "absl/strings/str_cat.h"

namespace attendant {

absl::StatusOr<JsonNode> ReadSpecialTokensMap(const JsonFolder& folder, const JsonNode& config) {
  constexpr char kFile[] = "special_tokens_map.json";
  return config.Has("added_tokens_decoder")
             ? ParseJson("{}", absl::StrCat(folder.path(), "/", kFile))
             : folder.ReadOrEmpty(kFile);
}

}  // namespace attendant
