// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence_settings.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/colbert_head.h"
#include "kernels/checkpoints/sentence_module.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"
#include "server/models/sentence/chat_template.h"
#include "server/models/sentence/cross_encoder.h"
#include "server/models/sentence/model_folder.h"
#include "server/models/sentence/splade_modules.h"
#include "server/models/sentence/transformer_file.h"

namespace attendant {
namespace {

struct PoolingWords {
  const char* mode;  // value of pooling_mode
  const char* flag;  // older: a boolean field for each
  Pooling pooling;
};

// In the order in which sentence-transformers concatenates those whose flags are set.
constexpr PoolingWords kPoolings[] = {
    {"cls", "pooling_mode_cls_token", Pooling::kCls},
    {"max", "pooling_mode_max_tokens", Pooling::kMax},
    {"mean", "pooling_mode_mean_tokens", Pooling::kMean},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", Pooling::kMeanSqrtLen},
    {"weightedmean", "pooling_mode_weightedmean_tokens", Pooling::kWeightedMean},
    {"lasttoken", "pooling_mode_lasttoken", Pooling::kLast},
};

using Poolings = std::vector<Pooling>;

absl::StatusOr<Pooling> PoolingFromMode(const JsonNode& value) {
  std::string mode;
  ATTENDANT_RETURN_IF_ERROR(value.Get(mode));
  for (const PoolingWords& words : kPoolings) {
    if (mode == words.mode) return words.pooling;
  }
  return absl::UnimplementedError(
      absl::StrCat(value.where(), ": pooling '", mode, "' is not supported"));
}

// Empty when the field is absent.
absl::StatusOr<Poolings> PoolingsFromMode(const JsonNode& config) {
  Poolings poolings;
  if (!config.Has("pooling_mode")) return poolings;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode value, config.Field("pooling_mode"));
  std::vector<JsonNode> modes = {value};
  if (value.IsArray()) {
    ATTENDANT_ASSIGN_OR_RETURN(modes, value.Elements());
  }
  if (modes.empty() || modes.size() > std::size(kPoolings)) {
    return absl::InvalidArgumentError(absl::StrCat(value.where(), " has ", modes.size(),
                                                   " poolings, it must have 1 to ",
                                                   std::size(kPoolings)));
  }
  for (const JsonNode& mode : modes) {
    ATTENDANT_ASSIGN_OR_RETURN(const Pooling pooling, PoolingFromMode(mode));
    poolings.push_back(pooling);
  }
  return poolings;
}

absl::StatusOr<Poolings> PoolingsFromFlags(const JsonNode& config) {
  Poolings poolings;
  for (const PoolingWords& words : kPoolings) {
    bool set = false;
    ATTENDANT_RETURN_IF_ERROR(config.Read(words.flag, set));
    if (set) poolings.push_back(words.pooling);
  }
  return poolings;
}

absl::Status CheckWidth(const JsonNode& config, int64_t hidden) {
  for (const char* field : {"word_embedding_dimension", "embedding_dimension"}) {
    int64_t width = hidden;
    ATTENDANT_RETURN_IF_ERROR(config.Read(field, width));
    if (width != hidden) {
      return absl::InvalidArgumentError(absl::StrCat(config.where(), ": ", field, " is ", width,
                                                     ", the encoder's hidden_size is ", hidden));
    }
  }
  return absl::OkStatus();
}

// With both, pooling_mode counts for sentence-transformers. The flags must then name the same ones.
// With neither it is the mean, as for sentence-transformers.
absl::Status ReadPooling(const JsonFolder& folder, int64_t hidden, SentenceSettings& settings) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.Read("config.json"));
  ATTENDANT_RETURN_IF_ERROR(CheckWidth(config, hidden));
  ATTENDANT_ASSIGN_OR_RETURN(const Poolings modes, PoolingsFromMode(config));
  ATTENDANT_ASSIGN_OR_RETURN(const Poolings flags, PoolingsFromFlags(config));
  if (!modes.empty() && !flags.empty() && modes != flags) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.where(), ": pooling_mode and the pooling_mode_* fields contradict each other"));
  }
  if (!flags.empty()) settings.poolings = flags;
  if (!modes.empty()) settings.poolings = modes;
  return config.Read("include_prompt", settings.include_prompt);
}

// A step of modules.json: its class and its folder.
struct Step {
  std::string type;
  std::string path;
};

absl::StatusOr<Step> ReadStep(const JsonNode& node) {
  Step step;
  std::string type;
  ATTENDANT_RETURN_IF_ERROR(node.Require("type", type));
  ATTENDANT_RETURN_IF_ERROR(node.Read("path", step.path));
  step.type = std::string(ModuleClass(type));
  ATTENDANT_RETURN_IF_ERROR(CheckModulePath(node, step.path));
  return step;
}

absl::StatusOr<std::vector<Step>> ReadSteps(const JsonNode& modules) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules.Elements());
  if (elements.size() > kMaxModules) {
    return absl::InvalidArgumentError(absl::StrCat(modules.where(), " has ", elements.size(),
                                                   " steps, the limit is ", kMaxModules));
  }
  std::vector<Step> steps;
  for (const JsonNode& element : elements) {
    ATTENDANT_ASSIGN_OR_RETURN(Step step, ReadStep(element));
    steps.push_back(std::move(step));
  }
  return steps;
}

// Adds a step behind the pooling to `settings`, which holds the steps before it.
absl::Status AddStep(const JsonFolder& root, const JsonNode& modules, size_t index,
                     const Step& step, int64_t hidden, SentenceSettings& settings) {
  const JsonFolder folder = root.At(step.path);
  const int64_t width = settings.embedding_dims(hidden);
  std::vector<SentenceHead::Module>& head = settings.head.modules;
  if (step.type == "Dense") {
    ATTENDANT_ASSIGN_OR_RETURN(SentenceHead::Dense dense, ReadDense(folder, width));
    head.emplace_back(std::move(dense));
  } else if (step.type == "LayerNorm") {
    ATTENDANT_ASSIGN_OR_RETURN(HeadNorm norm, ReadHeadNorm(folder, width));
    head.emplace_back(std::move(norm));
  } else if (step.type == "Normalize") {
    ATTENDANT_RETURN_IF_ERROR(CheckFeatures(folder));
    head.emplace_back(SentenceHead::Normalize{});
  } else if (step.type != "Dropout") {  // does nothing outside of training
    return absl::UnimplementedError(
        absl::StrCat(modules.where(), ": step ", index, " is ", step.type,
                     "; behind Transformer and Pooling, supported are Dense, LayerNorm, Normalize "
                     "and Dropout of sentence-transformers"));
  }
  return absl::OkStatus();
}

// A request decides on the last Normalize.
void TakeNormalize(SentenceSettings& settings) {
  std::vector<SentenceHead::Module>& modules = settings.head.modules;
  settings.normalize =
      !modules.empty() && std::holds_alternative<SentenceHead::Normalize>(modules.back());
  if (settings.normalize) modules.pop_back();
}

absl::Status ApplySteps(const JsonFolder& root, const JsonNode& modules, int64_t hidden,
                        SentenceSettings& settings) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<Step> steps, ReadSteps(modules));
  constexpr const char* kFirst[] = {"Transformer", "Pooling"};
  for (size_t i = 0; i < std::min(steps.size(), std::size(kFirst)); ++i) {
    if (steps[i].type == kFirst[i]) continue;
    return absl::UnimplementedError(absl::StrCat(modules.where(), ": step ", i, " is ",
                                                 steps[i].type, ", supported is ", kFirst[i],
                                                 " of sentence-transformers"));
  }
  if (steps.size() < std::size(kFirst)) {
    return absl::InvalidArgumentError(absl::StrCat(modules.where(), ": there is no Pooling step"));
  }
  ATTENDANT_RETURN_IF_ERROR(ReadPooling(root.At(steps[1].path), hidden, settings));
  for (size_t i = std::size(kFirst); i < steps.size(); ++i) {
    ATTENDANT_RETURN_IF_ERROR(AddStep(root, modules, i, steps[i], hidden, settings));
  }
  return absl::OkStatus();
}

// A limit on what sentence-transformers gives out; 0: there is none.
absl::StatusOr<int64_t> ReadLimit(const JsonFolder& root, const char* field) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config,
                             root.ReadOrEmpty("config_sentence_transformers.json"));
  int64_t limit = 0;
  if (config.Has(field)) ATTENDANT_RETURN_IF_ERROR(ReadAtLeast(config, field, 1, limit));
  return limit;
}

// A vector that is cut is not normalized again: a Normalize before the cut is not the last step.
absl::Status AddTruncation(const JsonFolder& root, int64_t hidden, SentenceSettings& settings) {
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t dims, ReadLimit(root, "truncate_dim"));
  if (dims == 0 || dims >= settings.embedding_dims(hidden)) return absl::OkStatus();
  settings.head.modules.emplace_back(SentenceHead::Truncate{dims});
  return absl::OkStatus();
}

absl::Status ReadChain(const JsonFolder& root, int64_t hidden, SentenceSettings& settings) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> modules, root.Find("modules.json"));
  if (modules.has_value()) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool sparse, IsSparseChain(*modules));
    ATTENDANT_ASSIGN_OR_RETURN(const bool colbert, IsColbertChain(*modules));
    ATTENDANT_ASSIGN_OR_RETURN(const bool pairs, IsCrossEncoderChain(root, *modules));
    if (sparse || colbert || pairs) return absl::OkStatus();
    ATTENDANT_RETURN_IF_ERROR(ApplySteps(root, *modules, hidden, settings));
  } else {
    const absl::Status status = ReadPooling(root.At("1_Pooling"), hidden, settings);
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  ATTENDANT_RETURN_IF_ERROR(AddTruncation(root, hidden, settings));
  TakeNormalize(settings);
  return absl::OkStatus();
}

// A length limit in `config`, capped at `limit`; nullopt when the field does not exist.
absl::StatusOr<std::optional<int64_t>> ReadMaxTokens(const JsonNode& config, const char* field,
                                                     int64_t limit) {
  if (!config.Has(field)) return std::nullopt;
  double tokens = 0;
  ATTENDANT_RETURN_IF_ERROR(ReadAtLeast(config, field, 1, tokens));
  return static_cast<int64_t>(std::min(tokens, static_cast<double>(limit)));
}

absl::StatusOr<int64_t> ReadMaxTextTokens(const JsonFolder& folder, int64_t limit) {
  std::optional<int64_t> tokens;
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> file, ReadTransformerFile(folder));
  if (file.has_value()) {
    ATTENDANT_ASSIGN_OR_RETURN(tokens, ReadMaxTokens(*file, "max_seq_length", limit));
  }
  if (tokens.has_value()) return *tokens;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode tokenizer, folder.ReadOrEmpty("tokenizer_config.json"));
  ATTENDANT_ASSIGN_OR_RETURN(tokens, ReadMaxTokens(tokenizer, "model_max_length", limit));
  return tokens.value_or(limit);
}

absl::StatusOr<bool> ReadLowercases(const JsonFolder& folder) {
  bool lowercases = false;
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> file, ReadTransformerFile(folder));
  if (file.has_value()) ATTENDANT_RETURN_IF_ERROR(file->Read("do_lower_case", lowercases));
  return lowercases;
}

absl::StatusOr<std::optional<TruncationSide>> ReadTruncationSide(const JsonFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.ReadOrEmpty("tokenizer_config.json"));
  if (!config.Has("truncation_side")) return std::nullopt;
  std::string side;
  ATTENDANT_RETURN_IF_ERROR(config.Read("truncation_side", side));
  if (side == "right") return TruncationSide::kRight;
  if (side == "left") return TruncationSide::kLeft;
  return absl::InvalidArgumentError(
      absl::StrCat(config.where(), ": truncation_side is '", side, "', it must be right or left"));
}

}  // namespace

absl::string_view PoolingName(Pooling pooling) {
  for (const PoolingWords& words : kPoolings) {
    if (words.pooling == pooling) return words.mode;
  }
  return "";
}

absl::StatusOr<SentenceSettings> ReadSentenceSettings(const ModelFolder& folder, int64_t hidden,
                                                      int64_t max_sequence_tokens) {
  SentenceSettings settings;
  // A Router has no modules that make an embedding.
  if (!folder.splade.has_value())
    ATTENDANT_RETURN_IF_ERROR(ReadChain(folder.root, hidden, settings));
  ATTENDANT_ASSIGN_OR_RETURN(settings.max_text_tokens,
                             ReadMaxTextTokens(folder.encoder, max_sequence_tokens));
  ATTENDANT_RETURN_IF_ERROR(CheckTransformerFile(folder, settings.max_text_tokens));
  ATTENDANT_ASSIGN_OR_RETURN(settings.max_active_dims, ReadLimit(folder.root, "max_active_dims"));
  ATTENDANT_ASSIGN_OR_RETURN(settings.lowercases, ReadLowercases(folder.encoder));
  ATTENDANT_ASSIGN_OR_RETURN(settings.truncation_side, ReadTruncationSide(folder.encoder));
  ATTENDANT_ASSIGN_OR_RETURN(settings.leaves_template, WantsChatTemplate(folder));
  return settings;
}

}  // namespace attendant
