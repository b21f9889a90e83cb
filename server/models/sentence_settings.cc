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
#include "kernels/core/status_macros.h"
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
  ATTENDANT_RETURN_IF_ERROR(config.Require("pooling_mode", mode));
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
    ATTENDANT_RETURN_IF_ERROR(config.Read(name.flag, set));
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
    ATTENDANT_RETURN_IF_ERROR(config.Read(field, width));
    if (width != hidden) {
      return absl::InvalidArgumentError(absl::StrCat(config.where(), ": ", field, " is ", width,
                                                     ", the encoder's hidden_size is ", hidden));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadPooling(const std::string& path, int64_t hidden, SentenceSettings& settings) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, ReadJsonFile(path));
  ATTENDANT_RETURN_IF_ERROR(CheckWidth(config, hidden));
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<Pooling> mode, PoolingFromMode(config));
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<Pooling> flags, PoolingFromFlags(config));
  if (mode && flags && *mode != *flags) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": pooling_mode and the pooling_mode_* fields contradict each other"));
  }
  if (!mode && !flags) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no pooling is chosen"));
  }
  settings.pooling = mode.value_or(flags.value_or(Pooling::kMean));
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
  ATTENDANT_RETURN_IF_ERROR(node.Require("type", type));
  ATTENDANT_RETURN_IF_ERROR(node.Read("path", step.path));
  step.type = std::vector<std::string>(absl::StrSplit(type, '.')).back();
  if (absl::StartsWith(step.path, "/") || absl::StrContains(step.path, "..")) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.where(), ": path '", step.path, "' leaves the checkpoint's folder"));
  }
  return step;
}

absl::StatusOr<std::vector<Step>> ReadSteps(const JsonNode& modules) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules.Elements());
  std::vector<Step> steps;
  for (const JsonNode& element : elements) {
    ATTENDANT_ASSIGN_OR_RETURN(Step step, ReadStep(element));
    steps.push_back(std::move(step));
  }
  return steps;
}

// The only chain that is supported: Transformer, Pooling, and optionally Normalize.
absl::Status ApplySteps(const std::string& directory, const JsonNode& modules, int64_t hidden,
                        SentenceSettings& settings) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<Step> steps, ReadSteps(modules));
  constexpr const char* kChain[] = {"Transformer", "Pooling", "Normalize"};
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i >= std::size(kChain) || steps[i].type != kChain[i]) {
      return absl::UnimplementedError(
          absl::StrCat(modules.where(), ": step ", i, " is ", steps[i].type,
                       "; supported are Transformer, Pooling and Normalize, in this order"));
    }
  }
  if (steps.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(modules.where(), ": there is no Pooling step"));
  }
  settings.normalize = steps.size() == 3;
  return ReadPooling(absl::StrCat(directory, "/", steps[1].path, "/config.json"), hidden, settings);
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
  ATTENDANT_RETURN_IF_ERROR(config->Require(field, tokens));
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
    ATTENDANT_ASSIGN_OR_RETURN(const std::optional<int64_t> tokens,
                               ReadMaxTokens(absl::StrCat(directory, file), field, limit));
    if (tokens) return *tokens;
  }
  return limit;
}

}  // namespace

absl::StatusOr<SentenceSettings> ReadSentenceSettings(const std::string& directory, int64_t hidden,
                                                      int64_t max_sequence_tokens) {
  SentenceSettings settings;
  ATTENDANT_RETURN_IF_ERROR(ReadChain(directory, hidden, settings));
  ATTENDANT_ASSIGN_OR_RETURN(settings.max_text_tokens,
                             ReadMaxTextTokens(directory, max_sequence_tokens));
  return settings;
}

}  // namespace attendant
