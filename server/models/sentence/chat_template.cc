// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/chat_template.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/sentence_module.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "server/models/sentence/cross_encoder.h"
#include "server/models/sentence/transformer_file.h"

namespace attendant {

absl::StatusOr<bool> WantsChatTemplate(const ModelFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> modules,
                             folder.root.Find("modules.json"));
  if (modules.has_value()) return false;
  const std::string of_its_own = folder.encoder.path() + "/chat_template.jinja";
  ATTENDANT_ASSIGN_OR_RETURN(const bool there, IsFile(of_its_own));
  if (there) return true;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config,
                             folder.encoder.ReadOrEmpty("tokenizer_config.json"));
  return config.Has("chat_template");
}

absl::StatusOr<bool> PairsAreMessages(const ModelFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> modules,
                             folder.root.Find("modules.json"));
  if (!modules.has_value()) return false;
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
  return absl::UnimplementedError(absl::StrCat(folder.encoder.path(),
                                               "/sentence_bert_config.json: `modality_config` is "
                                               "not there, and the folder has a LogitScore"));
}

}  // namespace attendant
