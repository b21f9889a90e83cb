// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/families/rotary_fields.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace {

constexpr char kLayerTypes[] = "full_attention or sliding_attention";

bool IsLayerType(absl::string_view type) {
  return type == "full_attention" || type == "sliding_attention";
}

absl::Status ReadLongWaves(const JsonNode& parameters, int64_t positions, LongWaves& waves) {
  ATTENDANT_RETURN_IF_ERROR(parameters.Require("factor", waves.factor));
  ATTENDANT_RETURN_IF_ERROR(parameters.Require("low_freq_factor", waves.low));
  ATTENDANT_RETURN_IF_ERROR(parameters.Require("high_freq_factor", waves.high));
  waves.trained_positions = positions;
  return parameters.Read("original_max_position_embeddings", waves.trained_positions);
}

// Reads an object of transformers 5: `rope_theta`, the base; where it is absent, the base stays as
// it is. Its `rope_type` (else `type`, the older name) is "default", or "llama3" with the fields of
// long waves, whose model has so many `positions`. UNIMPLEMENTED for another one, and for heads
// that turn in part.
absl::Status ReadRopeFields(const JsonNode& parameters, int64_t positions, Rotary& rotary) {
  const char* const field = parameters.Has("rope_type") ? "rope_type" : "type";
  std::string type = "default";
  ATTENDANT_RETURN_IF_ERROR(parameters.Read(field, type));
  if (type == "llama3") {
    ATTENDANT_RETURN_IF_ERROR(ReadLongWaves(parameters, positions, rotary.long_waves));
  } else if (type != "default") {
    return Unsupported(parameters, field, Quoted(type), "default, llama3");
  }
  double part = 1;
  ATTENDANT_RETURN_IF_ERROR(parameters.Read("partial_rotary_factor", part));
  if (part != 1) return Unsupported(parameters, "partial_rotary_factor", absl::StrCat(part), "1");
  return parameters.Read("rope_theta", rotary.base);
}

}  // namespace

absl::Status ReadRopeParameters(const JsonNode& json, EncoderConfig& config) {
  Rotary& rotary = config.rotary;
  ATTENDANT_RETURN_IF_ERROR(json.Read("rope_theta", rotary.base));
  for (const char* field : {"rope_scaling", "rope_parameters"}) {
    if (!json.Has(field)) continue;
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode parameters, json.Field(field));
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, parameters.FieldNames());
    if (names.empty()) continue;
    ATTENDANT_RETURN_IF_ERROR(ReadRopeFields(parameters, config.max_positions, rotary));
    break;
  }
  if (rotary.long_waves.factor == 1) return absl::OkStatus();
  return json.Read("original_max_position_embeddings", rotary.long_waves.trained_positions);
}

absl::Status ReadLayerTypes(const JsonNode& json, EncoderConfig& config) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode list, json.Field("layer_types"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> types, list.Elements());
  if (static_cast<int64_t>(types.size()) != config.layers) {
    return absl::InvalidArgumentError(absl::StrCat(
        list.where(), " has ", types.size(), " values, `num_hidden_layers` is ", config.layers));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    std::string type;
    ATTENDANT_RETURN_IF_ERROR(types[i].Get(type));
    if (!IsLayerType(type)) return Unsupported(json, "layer_types", Quoted(type), kLayerTypes);
    config.local_layers[i] = type == "sliding_attention";
  }
  return absl::OkStatus();
}

absl::Status ReadRopeOfLayerTypes(const JsonNode& json, EncoderConfig& config) {
  if (!json.Has("rope_parameters")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode parameters, json.Field("rope_parameters"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> types, parameters.FieldNames());
  for (const std::string& type : types) {
    if (!IsLayerType(type)) {
      return Unsupported(json, "rope_parameters", absl::StrCat("of ", Quoted(type)), kLayerTypes);
    }
    Rotary& rotary = type == "full_attention" ? config.rotary : config.local_rotary;
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode of_type, parameters.Field(type));
    ATTENDANT_RETURN_IF_ERROR(ReadRopeFields(of_type, config.max_positions, rotary));
  }
  return absl::OkStatus();
}

}  // namespace attendant
