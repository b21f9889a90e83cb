// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/chat_template.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/sentence_module.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "server/models/sentence/cross_encoder.h"
#include "server/models/sentence/transformer_file.h"

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

absl::StatusOr<bool> PairsAreMessages(const ModelFolder& folder) {
  const absl::StatusOr<JsonNode> modules = ReadJsonFile(folder.root + "/modules.json");
  if (absl::IsNotFound(modules.status())) return false;
  ATTENDANT_RETURN_IF_ERROR(modules);
  ATTENDANT_ASSIGN_OR_RETURN(const bool pairs, IsCrossEncoderChain(folder.root, *modules));
  if (!pairs) return false;
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> file,
                             ReadTransformerFile(folder.encoder));
  if (file.has_value() && file->Has("modality_config")) {
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode kinds, file->Field("modality_config"));
    return kinds.Has("message");
  }
  ATTENDANT_ASSIGN_OR_RETURN(const bool words, IsLogitScoreChain(*modules));
  if (!words) return false;
  return absl::UnimplementedError(absl::StrCat(folder.encoder,
                                               "/sentence_bert_config.json: `modality_config` is "
                                               "not there, and the folder has a LogitScore"));
}

}  // namespace attendant
