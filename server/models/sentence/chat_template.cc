// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/chat_template.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace {

bool IsThere(const std::string& path) {
  std::error_code absent;
  return std::filesystem::is_regular_file(path, absent);
}

}  // namespace

absl::StatusOr<bool> WantsChatTemplate(const ModelFolder& folder) {
  if (IsThere(folder.root + "/modules.json")) return false;
  if (IsThere(folder.encoder + "/chat_template.jinja")) return true;
  const absl::StatusOr<JsonNode> config = ReadJsonFile(folder.encoder + "/tokenizer_config.json");
  if (absl::IsNotFound(config.status())) return false;
  ATTENDANT_RETURN_IF_ERROR(config);
  return config->Has("chat_template");
}

}  // namespace attendant
