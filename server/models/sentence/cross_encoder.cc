// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/cross_encoder.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/classifier_head.h"
#include "kernels/checkpoints/sentence_module.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"
#include "server/models/sentence/chat_template.h"

namespace attendant {
namespace {

constexpr char kSettingsFile[] = "config_sentence_transformers.json";

absl::Status CheckDefaultPrompt(const JsonNode& config) {
  std::string name, text;
  ATTENDANT_RETURN_IF_ERROR(config.Read("default_prompt_name", name));
  if (name.empty() || !config.Has("prompts")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode prompts, config.Field("prompts"));
  ATTENDANT_RETURN_IF_ERROR(prompts.Read(name, text));
  if (text.empty()) return absl::OkStatus();
  return Unsupported(
      config, "default_prompt_name", Quoted(name),
      "none for a cross-encoder without a chat template: a prompt is not put before pairs");
}

}  // namespace

absl::StatusOr<bool> IsCrossEncoderChain(const JsonFolder& root, const JsonNode& modules) {
  ATTENDANT_ASSIGN_OR_RETURN(const bool words, IsLogitScoreChain(modules));
  if (words) return true;
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules.Elements());
  ATTENDANT_ASSIGN_OR_RETURN(const bool transformer, IsModule(modules, 0, "Transformer"));
  if (!transformer || elements.size() != 1) return false;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, root.ReadOrEmpty(kSettingsFile));
  std::string type;
  ATTENDANT_RETURN_IF_ERROR(config.Read("model_type", type));
  return type == "CrossEncoder";
}

absl::Status ReadCrossEncoder(const ModelFolder& folder,
                              std::optional<SequenceClassifier>& classifier) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> modules,
                             folder.root.Find("modules.json"));
  if (!modules.has_value()) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const bool found, IsCrossEncoderChain(folder.root, *modules));
  if (!found) return absl::OkStatus();
  if (!classifier.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat(folder.encoder.path(),
                     "/config.json: `architectures` is of no classifier that is "
                     "supported, and the folder is a cross-encoder's"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.root.ReadOrEmpty(kSettingsFile));
  ATTENDANT_ASSIGN_OR_RETURN(const bool chats, PairsAreMessages(folder));
  if (!chats) ATTENDANT_RETURN_IF_ERROR(CheckDefaultPrompt(config));
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<ScoreActivation> scores,
                             ReadScoreActivation(config, "activation_fn"));
  if (scores.has_value()) classifier->scores = *scores;
  return absl::OkStatus();
}

}  // namespace attendant
