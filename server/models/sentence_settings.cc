// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence_settings.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace {

struct PoolingName {
  const char* mode;  // value of pooling_mode
  const char* flag;  // older: a boolean field for each
  Pooling pooling;   // kNone: not supported
};

constexpr PoolingName kPoolingNames[] = {
    {"mean", "pooling_mode_mean_tokens", Pooling::kMean},
    {"cls", "pooling_mode_cls_token", Pooling::kCls},
    {"max", "pooling_mode_max_tokens", Pooling::kMax},
    {"lasttoken", "pooling_mode_lasttoken", Pooling::kLast},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", Pooling::kNone},
    {"weightedmean", "pooling_mode_weightedmean_tokens", Pooling::kNone},
};

absl::StatusOr<Pooling> Supported(const PoolingName& name, const JsonNode& config) {
  if (name.pooling != Pooling::kNone) return name.pooling;
  return absl::UnimplementedError(
      absl::StrCat(config.where(), ": pooling '", name.mode, "' is not supported"));
}

absl::StatusOr<std::optional<Pooling>> PoolingFromMode(const JsonNode& config) {
  if (!config.Has("pooling_mode")) return std::nullopt;
  std::string mode;
  if (absl::Status status = config.Require("pooling_mode", mode); !status.ok()) return status;
  for (const PoolingName& name : kPoolingNames) {
    if (mode == name.mode) return Supported(name, config);
  }
  return absl::UnimplementedError(
      absl::StrCat(config.where(), ": pooling_mode '", mode, "' is not supported"));
}

absl::StatusOr<std::optional<Pooling>> PoolingFromFlags(const JsonNode& config) {
  std::optional<PoolingName> chosen;
  for (const PoolingName& name : kPoolingNames) {
    bool set = false;
    if (absl::Status status = config.Read(name.flag, set); !status.ok()) return status;
    if (!set) continue;
    if (chosen) {
      return absl::UnimplementedError(absl::StrCat(config.where(), ": both ", chosen->flag, " and ",
                                                   name.flag,
                                                   " are set; concatenated poolings are not "
                                                   "supported"));
    }
    chosen = name;
  }
  if (!chosen) return std::nullopt;
  return Supported(*chosen, config);
}

absl::Status CheckWidth(const JsonNode& config, int64_t hidden) {
  for (const char* field : {"word_embedding_dimension", "embedding_dimension"}) {
    int64_t width = hidden;
    if (absl::Status status = config.Read(field, width); !status.ok()) return status;
    if (width != hidden) {
      return absl::InvalidArgumentError(absl::StrCat(config.where(), ": ", field, " is ", width,
                                                     ", the encoder's hidden_size is ", hidden));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadPooling(const std::string& path, int64_t hidden, SentenceSettings& settings) {
  absl::StatusOr<JsonNode> config = ReadJsonFile(path);
  if (!config.ok()) return config.status();
  if (absl::Status status = CheckWidth(*config, hidden); !status.ok()) return status;
  absl::StatusOr<std::optional<Pooling>> mode = PoolingFromMode(*config);
  if (!mode.ok()) return mode.status();
  absl::StatusOr<std::optional<Pooling>> flags = PoolingFromFlags(*config);
  if (!flags.ok()) return flags.status();
  if (*mode && *flags && **mode != **flags) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": pooling_mode and the pooling_mode_* fields contradict each other"));
  }
  if (!*mode && !*flags) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no pooling is chosen"));
  }
  settings.pooling = mode->value_or(flags->value_or(Pooling::kMean));
  return absl::OkStatus();
}

// A step of modules.json: the last word of its Python type, and its folder.
struct Step {
  std::string type;
  std::string path;
};

absl::StatusOr<Step> ReadStep(const JsonNode& node) {
  Step step;
  std::string type;
  if (absl::Status status = node.Require("type", type); !status.ok()) return status;
  if (absl::Status status = node.Read("path", step.path); !status.ok()) return status;
  step.type = std::vector<std::string>(absl::StrSplit(type, '.')).back();
  if (absl::StartsWith(step.path, "/") || absl::StrContains(step.path, "..")) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.where(), ": path '", step.path, "' leaves the checkpoint's folder"));
  }
  return step;
}

absl::StatusOr<std::vector<Step>> ReadSteps(const JsonNode& modules) {
  absl::StatusOr<std::vector<JsonNode>> elements = modules.Elements();
  if (!elements.ok()) return elements.status();
  std::vector<Step> steps;
  for (const JsonNode& element : *elements) {
    absl::StatusOr<Step> step = ReadStep(element);
    if (!step.ok()) return step.status();
    steps.push_back(*std::move(step));
  }
  return steps;
}

// The one chain that we compute: Transformer, Pooling, and perhaps Normalize.
absl::Status ApplySteps(const std::string& directory, const JsonNode& modules, int64_t hidden,
                        SentenceSettings& settings) {
  absl::StatusOr<std::vector<Step>> steps = ReadSteps(modules);
  if (!steps.ok()) return steps.status();
  constexpr const char* kChain[] = {"Transformer", "Pooling", "Normalize"};
  for (size_t i = 0; i < steps->size(); ++i) {
    if (i >= std::size(kChain) || (*steps)[i].type != kChain[i]) {
      return absl::UnimplementedError(
          absl::StrCat(modules.where(), ": step ", i, " is ", (*steps)[i].type,
                       "; supported are Transformer, Pooling and Normalize, in this order"));
    }
  }
  if (steps->size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(modules.where(), ": there is no Pooling step"));
  }
  settings.normalize = steps->size() == 3;
  return ReadPooling(absl::StrCat(directory, "/", (*steps)[1].path, "/config.json"), hidden,
                     settings);
}

absl::Status ReadChain(const std::string& directory, int64_t hidden, SentenceSettings& settings) {
  absl::StatusOr<JsonNode> modules = ReadJsonFile(absl::StrCat(directory, "/modules.json"));
  if (modules.ok()) return ApplySteps(directory, *modules, hidden, settings);
  if (!absl::IsNotFound(modules.status())) return modules.status();
  absl::Status status =
      ReadPooling(absl::StrCat(directory, "/1_Pooling/config.json"), hidden, settings);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

// A length limit in `file`, capped at `limit`; nullopt when the file or the field does not exist.
// Read as a double: "no limit" is often written as 1e30.
absl::StatusOr<std::optional<int64_t>> ReadMaxTokens(const std::string& file,
                                                     absl::string_view field, int64_t limit) {
  absl::StatusOr<JsonNode> config = ReadJsonFile(file);
  if (absl::IsNotFound(config.status())) return std::nullopt;
  if (!config.ok()) return config.status();
  if (!config->Has(field)) return std::nullopt;
  double tokens = 0;
  if (absl::Status status = config->Require(field, tokens); !status.ok()) return status;
  if (!(tokens >= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", field, " is ", tokens, ", it must be at least 1"));
  }
  return static_cast<int64_t>(std::min(tokens, static_cast<double>(limit)));
}

absl::StatusOr<int64_t> ReadMaxTextTokens(const std::string& directory, int64_t limit) {
  constexpr std::pair<const char*, const char*> kPlaces[] = {
      {"/sentence_bert_config.json", "max_seq_length"},
      {"/tokenizer_config.json", "model_max_length"}};
  for (const auto& [file, field] : kPlaces) {
    absl::StatusOr<std::optional<int64_t>> tokens =
        ReadMaxTokens(absl::StrCat(directory, file), field, limit);
    if (!tokens.ok()) return tokens.status();
    if (*tokens) return **tokens;
  }
  return limit;
}

}  // namespace

absl::StatusOr<SentenceSettings> ReadSentenceSettings(const std::string& directory, int64_t hidden,
                                                      int64_t max_sequence_tokens) {
  SentenceSettings settings;
  if (absl::Status status = ReadChain(directory, hidden, settings); !status.ok()) return status;
  absl::StatusOr<int64_t> tokens = ReadMaxTextTokens(directory, max_sequence_tokens);
  if (!tokens.ok()) return tokens.status();
  settings.max_text_tokens = *tokens;
  return settings;
}

}  // namespace attendant
