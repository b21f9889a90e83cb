// SPDX-License-Identifier: Apache-2.0
#include "server/models/inspect/folder_report.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/checkpoints/adapters.h"
#include "kernels/checkpoints/attention_module.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/checkpoints/head_fields.h"
#include "kernels/core/base/mapped_file.h"
#include "kernels/core/dtype.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/threads/thread_team.h"
#include "kernels/io/json_file.h"
#include "kernels/io/json_folder.h"
#include "server/models/inspect/fitting_tokenizer.h"
#include "server/models/memory/estimate.h"
#include "server/models/sentence/cross_encoder.h"
#include "server/models/sentence/head_options.h"
#include "server/models/sentence/late_interaction.h"
#include "server/models/sentence/model_folder.h"
#include "server/models/sentence/model_prompts.h"
#include "server/models/sentence_settings.h"

namespace attendant {
namespace {

absl::Status InspectModule(const JsonNode& config, const JsonFolder& folder, FolderReport& report) {
  report.is_module = true;
  ATTENDANT_RETURN_IF_ERROR(config.Read("type", report.architecture));
  ATTENDANT_ASSIGN_OR_RETURN(const ModuleCheckpoint module, LoadAttentionModule(folder));
  report.layers = module.config.layers;
  report.heads = module.config.heads;
  report.hidden = module.config.hidden;
  report.tasks = {"attend"};
  return absl::OkStatus();
}

void FillDimensions(const EncoderConfig& config, FolderReport& report) {
  report.layers = config.layers;
  report.heads = config.heads;
  report.hidden = config.hidden;
  report.vocab = config.vocab;
  report.max_sequence_tokens = config.max_positions;
}

absl::Status FillMemory(const ModelFolder& folder, FolderReport& report) {
  constexpr SessionLimits kLimits{.max_batch_tokens = 1024, .max_batch_sequences = 256};
  const ThreadTeam one_thread(1);
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
    ATTENDANT_ASSIGN_OR_RETURN(
        const MemoryEstimate estimate,
        EstimateMemory(folder, {.dtype = dtype, .limits = kLimits, .replicas = {&one_thread, 1}}));
    report.memory.push_back({.dtype = std::string(DTypeName(dtype)),
                             .held_bytes = estimate.held(),
                             .peak_bytes = estimate.peak()});
  }
  return absl::OkStatus();
}

void FillSentence(const SentenceSettings& settings, FolderReport& report) {
  report.max_text_tokens = settings.max_text_tokens;
  report.embedding_dims = settings.embedding_dims(report.hidden);
  report.pooling = absl::StrJoin(settings.poolings, "+", [](std::string* names, Pooling pooling) {
    absl::StrAppend(names, PoolingName(pooling));
  });
  report.normalize = settings.normalize;
}

// The tasks of heads on tokens.
absl::Status FillTokenTasks(const ModelFolder& folder, const Tokenizer* tokenizer,
                            std::vector<TokenHead>& heads, FolderReport& report) {
  for (TokenHead& head : heads) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool used, ReadHeadOptions(folder, tokenizer, head));
    if (!used) continue;
    for (const TaskKind task : TasksOf(head)) report.tasks.emplace_back(TaskName(task));
    if (head.kind == TokenHeadKind::kTokenLabels) report.token_labels = std::move(head.labels);
  }
  return absl::OkStatus();
}

absl::Status FillTasks(const ModelFolder& folder, const Tokenizer* tokenizer,
                       Checkpoint& checkpoint, FolderReport& report) {
  report.tasks = {"embed", "encode"};
  if (checkpoint.classifier.has_value()) {
    report.labels = checkpoint.classifier->labels;
    report.tasks.emplace_back(report.labels.size() == 1 ? "rerank" : "classify");
  }
  ATTENDANT_RETURN_IF_ERROR(FillTokenTasks(folder, tokenizer, checkpoint.token_heads, report));
  // By the vectors of their tokens; of texts only.
  if (AnyMakes(checkpoint.token_heads, TaskKind::kMultiVector) &&
      !checkpoint.classifier.has_value() && report.takes_text) {
    report.tasks.emplace_back("rerank");
  }
  return absl::OkStatus();
}

// The prompts of a model that takes texts. REQUIRES: ReadHeadOptions filled in the heads' options.
absl::Status InspectPrompts(const ModelFolder& folder, const EncoderConfig& config,
                            const std::vector<TokenHead>& heads, const Tokenizer& tokenizer,
                            FolderReport& report) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<LateInteraction> late,
                             FindLateInteraction(folder.root, heads));
  ATTENDANT_ASSIGN_OR_RETURN(const ModelPrompts read,
                             ReadModelPrompts({.folder = folder,
                                               .config = config,
                                               .tokenizer = tokenizer,
                                               .late = late,
                                               .makes_sparse = AnyMakes(heads, TaskKind::kSparse),
                                               .max_sequence_tokens = report.max_sequence_tokens,
                                               .max_text_tokens = report.max_text_tokens}));
  for (const auto& [name, prompt] : read.prompts.by_name) report.prompt_names.push_back(name);
  report.default_prompt_name = read.prompts.default_name;
  return absl::OkStatus();
}

absl::Status InspectEncoder(const JsonNode& json, const ModelFolder& folder, FolderReport& report) {
  ATTENDANT_ASSIGN_OR_RETURN(const EncoderConfig config, ReadEncoderConfig(folder.encoder));
  FillDimensions(config, report);
  ATTENDANT_ASSIGN_OR_RETURN(report.adapters, ReadAdapterNames(json));
  ATTENDANT_RETURN_IF_ERROR(FillMemory(folder, report));
  ATTENDANT_ASSIGN_OR_RETURN(Checkpoint checkpoint, LoadCheckpoint(folder.encoder));
  ATTENDANT_RETURN_IF_ERROR(ReadCrossEncoder(folder, checkpoint.classifier));
  ATTENDANT_ASSIGN_OR_RETURN(const SentenceSettings settings,
                             ReadSentenceSettings(folder, config.hidden, config.max_positions));
  FillSentence(settings, report);
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                             LoadFittingTokenizer(folder.encoder, config, settings));
  report.takes_text = tokenizer != nullptr;
  ATTENDANT_RETURN_IF_ERROR(FillTasks(folder, tokenizer.get(), checkpoint, report));
  if (!report.takes_text) return absl::OkStatus();
  return InspectPrompts(folder, config, checkpoint.token_heads, *tokenizer, report);
}

absl::Status Inspect(const std::string& directory, FolderReport& report) {
  ATTENDANT_ASSIGN_OR_RETURN(const ModelFolder folder, FindModelFolder(directory));
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.encoder.Read("config.json"));
  ATTENDANT_RETURN_IF_ERROR(config.Read("model_type", report.model_type));
  ATTENDANT_ASSIGN_OR_RETURN(report.architecture, FirstArchitecture(config));
  if (config.Has("type") && !config.Has("model_type")) {
    return InspectModule(config, folder.encoder, report);
  }
  return InspectEncoder(config, folder, report);
}

}  // namespace

FolderReport InspectFolder(const std::string& directory) {
  FolderReport report;
  const MappedReads reads;
  report.status = reads.Check(Inspect(directory, report));
  return report;
}

}  // namespace attendant
