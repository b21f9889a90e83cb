// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/families/bert_fields.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/weight_checks.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace {

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
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
};

absl::Status CheckNothingPruned(const JsonNode& json) {
  if (!json.Has("pruned_heads")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(JsonNode pruned, json.Field("pruned_heads"));
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::string> layers, pruned.FieldNames());
  return layers.empty() ? absl::OkStatus()
                        : Unsupported(json, "pruned_heads", "not empty", "no pruned head");
}

absl::Status CheckArchitecture(const JsonNode& json, const BertFields& fields) {
  ATTENDANT_RETURN_IF_ERROR(CheckText(json, "position_embedding_type", fields.position_type));
  ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "is_decoder"));
  if (!fields.reads_causal) ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "is_causal"));
  if (!fields.beside_decoder) {
    ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "is_encoder_decoder"));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "add_cross_attention"));
  return CheckNothingPruned(json);
}

absl::Status CheckWidthField(const JsonNode& json, const char* field, int64_t width) {
  const absl::Status bounds = CheckBounds({{field, width, kMaxWidth}});
  return bounds.ok()
             ? bounds
             : absl::InvalidArgumentError(absl::StrCat(json.where(), ": ", bounds.message()));
}

absl::Status RequireWidth(const JsonNode& json, const char* field, int64_t& width) {
  ATTENDANT_RETURN_IF_ERROR(json.Require(field, width));
  return CheckWidthField(json, field, width);
}

absl::Status ReadEmbeddingWidth(const JsonNode& json, const BertFields& fields,
                                EncoderConfig& config) {
  // Said twice in the relatives of BERT that have these fields; here they can only repeat.
  if (fields.default_embedding_width == 0) {
    return CheckNumber(json, "embedding_size", config.hidden);
  }
  config.embedding_width = fields.default_embedding_width;
  ATTENDANT_RETURN_IF_ERROR(json.Read("embedding_size", config.embedding_width));
  return CheckWidthField(json, "embedding_size", config.embedding_width);
}

absl::Status ReadDimensions(const JsonNode& json, const BertFields& fields, EncoderConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(json.Require(fields.layers, config.layers));
  ATTENDANT_RETURN_IF_ERROR(json.Require(fields.heads, config.heads));
  ATTENDANT_RETURN_IF_ERROR(json.Require(fields.hidden, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(json.Require(fields.ffn, config.ffn));
  ATTENDANT_RETURN_IF_ERROR(json.Require("vocab_size", config.vocab));
  config.max_positions = fields.default_max_positions;
  ATTENDANT_RETURN_IF_ERROR(fields.default_max_positions > 0
                                ? json.Read(fields.max_positions, config.max_positions)
                                : json.Require(fields.max_positions, config.max_positions));
  config.segment_types = fields.segment_types != nullptr ? fields.default_segment_types : 1;
  if (fields.segment_types != nullptr) {
    ATTENDANT_RETURN_IF_ERROR(json.Read(fields.segment_types, config.segment_types));
  }
  ATTENDANT_RETURN_IF_ERROR(ReadEmbeddingWidth(json, fields, config));
  if (fields.head_dim != nullptr && !(fields.optional_head_dim && !json.Has(fields.head_dim))) {
    ATTENDANT_RETURN_IF_ERROR(RequireWidth(json, fields.head_dim, config.head_width));
  }
  if (!fields.shared_keys) return CheckNumber(json, "num_key_value_heads", config.heads);
  if (fields.optional_shared_keys && !json.Has("num_key_value_heads")) return absl::OkStatus();
  return RequireWidth(json, "num_key_value_heads", config.kv_heads);
}

absl::Status ReadEpsilon(const JsonNode& json, const BertFields& fields, EncoderConfig& config) {
  config.layer_norm_epsilon = static_cast<float>(fields.default_epsilon);
  if (fields.epsilon == nullptr) return absl::OkStatus();
  return ReadLayerNormEpsilon(json, fields.epsilon, fields.default_epsilon,
                              config.layer_norm_epsilon);
}

absl::Status ReadActivation(const JsonNode& json, const BertFields& fields, EncoderConfig& config) {
  const char* const field = fields.activation;
  if (field == nullptr) return absl::OkStatus();
  std::string name = fields.default_activation;
  ATTENDANT_RETURN_IF_ERROR(json.Read(field, name));
  for (const NamedActivation& known : kActivations) {
    if (known.name == name) {
      config.activation = known.activation;
      return absl::OkStatus();
    }
  }
  return Unsupported(
      json, field, Quoted(name),
      "gelu, gelu_new, gelu_fast, gelu_python, gelu_pytorch_tanh, relu, silu or swish");
}

}  // namespace

absl::Status ValidateConfig(const JsonNode& json, const EncoderConfig& config) {
  const absl::Status status = Validate(config);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(json.where(), ": ", status.message()));
}

absl::Status ReadPositionsBehindPadding(const JsonNode& json, FamilyConfig& config) {
  int64_t padding_id = 1;
  ATTENDANT_RETURN_IF_ERROR(json.Read("pad_token_id", padding_id));
  if (padding_id < 0 || padding_id >= config.encoder.max_positions - 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        json.where(), ": `pad_token_id` is ", padding_id, ", it must be from 0 to ",
        config.encoder.max_positions - 2, ", below `max_position_embeddings` less one"));
  }
  config.first_position = padding_id + 1;
  config.encoder.max_positions -= config.first_position;
  return absl::OkStatus();
}

absl::StatusOr<EncoderConfig> ReadBertFields(const JsonNode& json, const BertFields& fields) {
  EncoderConfig config;
  ATTENDANT_RETURN_IF_ERROR(CheckArchitecture(json, fields));
  ATTENDANT_RETURN_IF_ERROR(ReadDimensions(json, fields, config));
  ATTENDANT_RETURN_IF_ERROR(ReadActivation(json, fields, config));
  ATTENDANT_RETURN_IF_ERROR(ReadEpsilon(json, fields, config));
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, config));
  return config;
}

}  // namespace attendant
