// SPDX-License-Identifier: Apache-2.0
#include "server/app/model_log.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "server/models/attention_model.h"
#include "server/models/encoder_model.h"
#include "spdlog/spdlog.h"

namespace attendant {
namespace {

double ToMiB(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void LogModule(const AttentionModel& model) {
  const ModuleConfig& config = model.module->config();
  spdlog::info(
      "attention module '{}' version {} is ready after {:.2f} s: {}, hidden {}, {} heads, {} "
      "layers",
      model.name, model.version, absl::ToDoubleSeconds(model.load_time),
      std::string(DTypeName(model.module->dtype())), config.hidden, config.heads,
      std::max<int64_t>(config.layers, 1));
}

void LogEncoder(const EncoderModel& model) {
  const PreparedInfo& info = model.encoder->info();
  spdlog::info(
      "model '{}' version {} is ready after {:.2f} s: {} on {} ({}{}), {} layers, hidden {}, at "
      "most {} tokens, text cut at {}{}; weights {:.1f} MiB, arenas {:.1f} MiB",
      model.name, model.version, absl::ToDoubleSeconds(model.load_time),
      std::string(DTypeName(info.dtype)), info.backend, info.isa,
      info.matmul_implementation.empty() ? "" : ", " + info.matmul_implementation,
      model.config().layers, model.config().hidden, model.max_sequence_tokens,
      model.sentence.max_text_tokens,
      model.tokenizer == nullptr ? ", no tokenizer: takes ids only" : "", ToMiB(info.weight_bytes),
      ToMiB(model.arena_bytes));
  if (model.tokenizer == nullptr || !model.sentence.leaves_template) return;
  spdlog::warn(
      "model '{}' version {}: texts go through no chat template; sentence-transformers applies the "
      "tokenizer's, because the folder has no modules.json",
      model.name, model.version);
}

void LogStall(const ModelStatus& status) {
  if (status.stalled_workers == 0) {
    return spdlog::info("model '{}' version {} ends its batches again", status.name,
                        status.version);
  }
  spdlog::error("model '{}' version {} has stalled: {} workers do not end their batches",
                status.name, status.version, status.stalled_workers);
}

// The log's words for a state that needs no details; null: it needs them.
const char* PlainNews(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return "is loading";
    case ModelState::kUnloaded:
      return "is unloaded";
    case ModelState::kIdle:
      return "is unloaded for want of requests";
    case ModelState::kUnloading:
      return "is being unloaded";
    case ModelState::kDraining:
      return "is draining";
    default:
      return nullptr;
  }
}

}  // namespace

void LogModel(const ModelStatus& status, ModelNews news) {
  if (news == ModelNews::kStall) return LogStall(status);
  if (status.state == ModelState::kFailed) {
    return spdlog::error("model '{}' version {} failed to load: {}", status.name, status.version,
                         std::string(status.error.message()));
  }
  if (status.state == ModelState::kLost) {
    return spdlog::error("model '{}' version {} answers no more: {}", status.name, status.version,
                         std::string(status.error.message()));
  }
  if (status.LastLoadFailed()) {
    return spdlog::error("model '{}' version {} was not loaded anew: {}", status.name,
                         status.version, std::string(status.error.message()));
  }
  if (status.state == ModelState::kIdle && !status.error.ok()) {
    return spdlog::warn("model '{}' version {} was not loaded again, and stays idle: {}",
                        status.name, status.version, std::string(status.error.message()));
  }
  if (const char* const plain = PlainNews(status.state); plain != nullptr) {
    return spdlog::info("model '{}' version {} {}", status.name, status.version, plain);
  }
  if (const AttentionModel* module = status.attention()) return LogModule(*module);
  if (const EncoderModel* encoder = status.encoder()) return LogEncoder(*encoder);
}

void LogRefused(const absl::Status& status) {
  spdlog::warn("not served from the model repository: {}", std::string(status.message()));
}

void LogRepository(const std::string& directory, const RepositoryContent& content) {
  for (const auto& [name, status] : content.refused) LogRefused(status);
  if (!content.models.empty()) return;
  spdlog::warn(
      "the model repository {} has no model yet: a model is a folder in it with a config.json",
      directory);
}

}  // namespace attendant
