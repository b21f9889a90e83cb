// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/config.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"

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
  ATTENDANT_RETURN_IF_ERROR(json.Read(field, value));
  return value == only ? absl::OkStatus() : Unsupported(json, field, Quoted(value), Quoted(only));
}

absl::Status CheckNumber(const JsonNode& json, const char* field, int64_t only) {
  int64_t value = only;
  ATTENDANT_RETURN_IF_ERROR(json.Read(field, value));
  return value == only ? absl::OkStatus()
                       : Unsupported(json, field, absl::StrCat(value), absl::StrCat(only));
}

absl::Status CheckNothingPruned(const JsonNode& json) {
  if (!json.Has("pruned_heads")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(JsonNode pruned, json.Field("pruned_heads"));
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::string> layers, pruned.FieldNames());
  return layers.empty() ? absl::OkStatus()
                        : Unsupported(json, "pruned_heads", "not empty", "no pruned head");
}

absl::Status CheckArchitecture(const JsonNode& json) {
  std::string model_type;
  ATTENDANT_RETURN_IF_ERROR(json.Require("model_type", model_type));
  ATTENDANT_RETURN_IF_ERROR(CheckText(json, "model_type", "bert"));
  ATTENDANT_RETURN_IF_ERROR(CheckText(json, "position_embedding_type", "absolute"));
  ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "is_decoder"));
  ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "is_encoder_decoder"));
  ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "add_cross_attention"));
  ATTENDANT_RETURN_IF_ERROR(CheckNothingPruned(json));
  return absl::OkStatus();
}

absl::Status ReadDimensions(const JsonNode& json, EncoderConfig& config) {
  for (const Dimension& dimension : kDimensions) {
    ATTENDANT_RETURN_IF_ERROR(json.Require(dimension.field, config.*dimension.to));
  }
  config.segment_types = 2;
  ATTENDANT_RETURN_IF_ERROR(json.Read("type_vocab_size", config.segment_types));
  // Said twice in the relatives of BERT that have these fields; here they can only repeat.
  ATTENDANT_RETURN_IF_ERROR(CheckNumber(json, "embedding_size", config.hidden));
  return CheckNumber(json, "num_key_value_heads", config.heads);
}

absl::Status ReadActivation(const JsonNode& json, EncoderConfig& config) {
  std::string name = "gelu";
  ATTENDANT_RETURN_IF_ERROR(json.Read("hidden_act", name));
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
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode json, ReadJsonFile(path));
  return ReadEncoderConfig(json);
}

absl::StatusOr<EncoderConfig> ReadEncoderConfig(const JsonNode& json) {
  EncoderConfig config;
  ATTENDANT_RETURN_IF_ERROR(CheckArchitecture(json));
  ATTENDANT_RETURN_IF_ERROR(ReadDimensions(json, config));
  ATTENDANT_RETURN_IF_ERROR(ReadActivation(json, config));
  ATTENDANT_RETURN_IF_ERROR(ReadLayerNormEpsilon(json, 1e-12, config.layer_norm_epsilon));
  if (absl::Status status = Validate(config); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(json.where(), ": ", status.message()));
  }
  return config;
}

}  // namespace attendant
