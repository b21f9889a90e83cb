// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/config.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"
#include "kernels/io/quoted.h"

namespace attendant {
namespace {

struct Dimension {
  const char* field;
  int64_t EncoderConfig::*to;
};

constexpr Dimension kDimensions[] = {
    {"num_hidden_layers", &EncoderConfig::layers},
    {"num_attention_heads", &EncoderConfig::heads},
    {"hidden_size", &EncoderConfig::hidden},
    {"intermediate_size", &EncoderConfig::ffn},
    {"vocab_size", &EncoderConfig::vocab},
    {"max_position_embeddings", &EncoderConfig::max_positions},
};

struct NamedActivation {
  absl::string_view name;
  Activation activation;
};

// gelu_fast is the same tanh formula, written otherwise.
constexpr NamedActivation kActivations[] = {
    {"gelu", Activation::kGeluErf},
    {"gelu_python", Activation::kGeluErf},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"relu", Activation::kRelu},
};

// A field that, when it is there, must have the one value that BERT's encoder means.
absl::Status CheckText(const JsonNode& json, const char* field, const std::string& only) {
  std::string value = only;
  if (absl::Status status = json.Read(field, value); !status.ok()) return status;
  return value == only ? absl::OkStatus() : Unsupported(json, field, Quoted(value), Quoted(only));
}

absl::Status CheckNumber(const JsonNode& json, const char* field, int64_t only) {
  int64_t value = only;
  if (absl::Status status = json.Read(field, value); !status.ok()) return status;
  return value == only ? absl::OkStatus()
                       : Unsupported(json, field, absl::StrCat(value), absl::StrCat(only));
}

absl::Status CheckNothingPruned(const JsonNode& json) {
  if (!json.Has("pruned_heads")) return absl::OkStatus();
  absl::StatusOr<JsonNode> pruned = json.Field("pruned_heads");
  if (!pruned.ok()) return pruned.status();
  absl::StatusOr<std::vector<std::string>> layers = pruned->FieldNames();
  if (!layers.ok()) return layers.status();
  return layers->empty() ? absl::OkStatus()
                         : Unsupported(json, "pruned_heads", "not empty", "no pruned head");
}

absl::Status CheckArchitecture(const JsonNode& json) {
  std::string model_type;
  if (absl::Status status = json.Require("model_type", model_type); !status.ok()) return status;
  for (const absl::Status& status :
       {CheckText(json, "model_type", "bert"),
        CheckText(json, "position_embedding_type", "absolute"), CheckFalse(json, "is_decoder"),
        CheckFalse(json, "is_encoder_decoder"), CheckFalse(json, "add_cross_attention"),
        CheckNothingPruned(json)}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadDimensions(const JsonNode& json, EncoderConfig& config) {
  for (const Dimension& dimension : kDimensions) {
    absl::Status status = json.Require(dimension.field, config.*dimension.to);
    if (!status.ok()) return status;
  }
  config.segment_types = 2;
  if (absl::Status status = json.Read("type_vocab_size", config.segment_types); !status.ok()) {
    return status;
  }
  // Said twice in the relatives of BERT that have these fields; here they can only repeat.
  if (absl::Status s = CheckNumber(json, "embedding_size", config.hidden); !s.ok()) return s;
  return CheckNumber(json, "num_key_value_heads", config.heads);
}

absl::Status ReadActivation(const JsonNode& json, EncoderConfig& config) {
  std::string name = "gelu";
  if (absl::Status status = json.Read("hidden_act", name); !status.ok()) return status;
  for (const NamedActivation& known : kActivations) {
    if (known.name == name) {
      config.activation = known.activation;
      return absl::OkStatus();
    }
  }
  return Unsupported(json, "hidden_act", Quoted(name),
                     "gelu, gelu_new, gelu_fast, gelu_python, gelu_pytorch_tanh or relu");
}

}  // namespace

absl::StatusOr<EncoderConfig> ReadEncoderConfig(const std::string& path) {
  absl::StatusOr<JsonNode> json = ReadJsonFile(path);
  if (!json.ok()) return json.status();
  EncoderConfig config;
  absl::Status status = CheckArchitecture(*json);
  if (status.ok()) status = ReadDimensions(*json, config);
  if (status.ok()) status = ReadActivation(*json, config);
  if (status.ok()) status = ReadLayerNormEpsilon(*json, 1e-12, config.layer_norm_epsilon);
  if (!status.ok()) return status;
  if (status = Validate(config); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  }
  return config;
}

}  // namespace attendant
