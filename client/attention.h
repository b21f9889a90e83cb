// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/types.h"

// What Client::Attend takes and gives. attendant/v1/attention.proto says what each field means, and
// which shapes tensors have.
namespace attendant::client {

// Row-major truth values; values.size() is the product of shape.
struct BoolTensor {
  std::vector<int64_t> shape = {};
  std::vector<uint8_t> values = {};  // 0 or 1
};

enum class WeightsOutput { kNone, kPerHead, kAveraged };
enum class LinearFeatureMap { kEluPlusOne, kRelu };

struct AttentionPositions {
  enum class Kind { kNone, kSinusoidal, kLearned, kRotary, kAlibi };
  Kind kind = Kind::kNone;
  float base = 0;                  // sinusoidal and rotary; 0: 10,000
  bool interleaved = false;        // rotary
  bool to_value = false;           // sinusoidal and learned: added to value too
  Tensor learned = {};             // [positions, query_dim]
  std::vector<float> slopes = {};  // ALiBi's, [heads]; empty: the paper's
};

struct AttendRequest {
  // A loaded module; empty: what `kind` says.
  std::string model = {};
  // scaled_dot_product, flash, multi_head, additive, luong_dot, luong_general, luong_concat, local,
  // strided, linear or linformer. Not read with a model.
  std::string kind = "scaled_dot_product";
  Tensor query = {};
  std::optional<Tensor> key = {};    // unset: query
  std::optional<Tensor> value = {};  // unset: key
  std::vector<int64_t> query_lengths = {};
  std::vector<int64_t> key_lengths = {};
  // The kind's tensors by the names of their fields ("query_weight", "key_projection", ...).
  std::map<std::string, Tensor> parameters = {};
  int64_t heads = 0;                                             // multi_head
  int64_t window = 0;                                            // local
  int64_t block = 0;                                             // strided
  LinearFeatureMap feature_map = LinearFeatureMap::kEluPlusOne;  // linear
  // Truth values, or numbers to be added to the scores.
  std::variant<std::monostate, BoolTensor, Tensor> mask = {};
  std::optional<BoolTensor> key_padding_mask = {};
  bool causal = false;
  std::optional<float> scale = {};
  AttentionPositions positions = {};
  WeightsOutput weights = WeightsOutput::kNone;
  std::optional<DType> compute_dtype = {};  // kF32 or kBf16; unset: the server's choice
  DType dtype = DType::kF32;                // of all tensors on the wire
  int32_t priority = 0;
};

struct AttendResult {
  std::string model;
  Tensor output;
  std::optional<Tensor> weights;
  Timings timings;
};

struct AttentionKind {
  std::string name, title, formula, time, memory, use;
  bool weights = false;
  std::vector<std::string> parameters;  // "query_weight [units, query dim]"
};

struct AttentionModule {
  std::string name, state, type, dtype, activation;
  int64_t layers = 0, heads = 0, hidden = 0, key_dim = 0, value_dim = 0, ffn = 0;
  bool norm_first = false;
};

struct AttentionOffer {
  std::vector<AttentionKind> kinds;
  std::vector<AttentionModule> modules;
  int64_t max_attention_tokens = 0, max_attention_bytes = 0, max_attention_operations = 0;
  int64_t max_response_bytes = 0, max_request_bytes = 0;
};

}  // namespace attendant::client
