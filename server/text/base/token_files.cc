// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/token_files.h"

#include "absl/status/status.h"

namespace attendant {

absl::StatusOr<JsonNode> ReadOptionalJson(const std::string& path) {
  absl::StatusOr<JsonNode> file = ReadJsonFile(path);
  return absl::IsNotFound(file.status()) ? ParseJson("{}", path) : file;
}

absl::StatusOr<JsonNode> ReadSpecialTokensMap(const std::string& directory,
                                              const JsonNode& config) {
  const std::string path = directory + "/special_tokens_map.json";
  return config.Has("added_tokens_decoder") ? ParseJson("{}", path) : ReadOptionalJson(path);
}

}  // namespace attendant
