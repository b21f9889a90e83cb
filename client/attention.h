// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/types.h"

// Requests and answers of Client::Attend and Client::ListAttention: attention over tensors of the
// caller, without a model or through the weights of a loaded module.
//
// The names of sizes, beside those of types.h: `query_len` and `key_len` are the tokens of one
// sequence that attend and that are attended to; `query_dim`, `key_dim` and `value_dim` are the
// widths of their rows. attendant/v1/attention.proto has the formula of every kind.
namespace attendant::client {

// Truth values, row-major.
struct BoolTensor {
  std::vector<int64_t> shape = {};
  std::vector<uint8_t> values = {};  // 0 or 1; as many as the product of `shape`
};

// The attention weights to answer with: none, those of every head, or their mean over the heads.
enum class WeightsOutput { kNone, kPerHead, kAveraged };

// The feature map phi of linear attention: elu(x) + 1, or max(x, 0).
enum class LinearFeatureMap { kEluPlusOne, kRelu };

// The position encoding of an attention call. A field that belongs to another kind is not read.
struct AttentionPositions {
  enum class Kind {
    kNone,        // not at all, or as the module does
    kSinusoidal,  // a table of sines and cosines is added to query and key
    kLearned,     // the table `learned` is added to query and key
    kRotary,      // pairs of dimensions of query and key turn by an angle
    kAlibi,       // -slope * |distance| is added to the scores of each head
  };
  Kind kind = Kind::kNone;
  float base = 0;                  // sinusoidal, rotary: base of the wavelengths; 0 is 10,000
  bool interleaved = false;        // rotary: pairs are (2d, 2d + 1), not (d, d + query_dim / 2)
  bool to_value = false;           // sinusoidal, learned: the table is added to value too
  Tensor learned = {};             // learned: [positions, query_dim], a row for each position
  std::vector<float> slopes = {};  // ALiBi: [heads]; empty takes the slopes of the paper
};

// One request for attention. Client::Attend sends nothing and returns INVALID_ARGUMENT for an
// unknown kind, an unknown parameter, or a tensor whose values do not fill its shape.
struct AttendRequest {
  // The name of a loaded module, whose kind and parameters are then used. Empty: `kind` and
  // `parameters` describe the computation.
  std::string model = {};
  // scaled_dot_product, flash, multi_head, additive, luong_dot, luong_general, luong_concat, local,
  // strided, linear or linformer. Not read with a model.
  std::string kind = "scaled_dot_product";

  // Dense, when query_lengths is empty, with `heads` for the kinds without parameters of their own:
  //   query [batch, query_len, query_dim]   or   [batch, heads, query_len, query_dim]
  //   key   [batch, key_len, key_dim]       or   [batch, heads, key_len, key_dim]
  //   value [batch, key_len, value_dim]     or   [batch, heads, key_len, value_dim]
  // Ragged, sequence after sequence:
  //   query [sum of query_lengths, query_dim]  or  [sum of query_lengths, heads, query_dim]
  //   key, value likewise with the sum of key_lengths
  // All three have the same rank.
  Tensor query = {};
  std::optional<Tensor> key = {};           // unset: query
  std::optional<Tensor> value = {};         // unset: key
  std::vector<int64_t> query_lengths = {};  // [batch], each at least 1
  std::vector<int64_t> key_lengths = {};    // [batch]; empty: query_lengths

  // The tensors of the kind by the names of their proto fields: "query_weight", "key_projection".
  // ListAttention gives names and shapes.
  std::map<std::string, Tensor> parameters = {};
  int64_t heads = 0;   // multi_head: number of heads; divides query_dim
  int64_t window = 0;  // local: query i sees keys i - window to i + window
  int64_t block = 0;   // strided: tokens in a block; 0 is the root of key_len
  LinearFeatureMap feature_map = LinearFeatureMap::kEluPlusOne;  // linear

  // Truth values, where 1 may attend, or numbers to add to the scores:
  // [query_len, key_len], [batch, query_len, key_len] or [batch, heads, query_len, key_len], where
  // a dim of 1 stands for any size. In a ragged request query_len and key_len are the longest.
  std::variant<std::monostate, BoolTensor, Tensor> mask = {};
  // [batch, key_len], or ragged [sum of key_lengths]; 0 hides a key. PyTorch has it the other way.
  std::optional<BoolTensor> key_padding_mask = {};
  bool causal = false;              // query i sees keys 0 to i only
  std::optional<float> scale = {};  // factor of the scores; unset: the default of the kind
  AttentionPositions positions = {};

  WeightsOutput attention_weights = WeightsOutput::kNone;
  // Number format of the computation, kF32 or kBf16. Unset: f32, or the format of the module.
  std::optional<DType> compute_dtype = {};
  DType dtype = DType::kF32;  // of all tensors on the wire, in both directions
  int32_t priority = 0;       // -100 to 100; higher is served first
};

// The answer to an AttendRequest.
struct AttendResult {
  std::string model;  // as in the request
  Tensor output;      // shaped like query, with value_dim (a module: hidden) as the last dim
  // When asked for. Dense: [batch, heads, query_len, key_len], without `heads` if they are averaged
  // or the query has none. Ragged: flat, [heads, query_len, key_len] of each sequence in turn.
  std::optional<Tensor> attention_weights;
  Timings timings;
};

// A kind of attention that the server computes. Programs use `name`; the other texts explain the
// kind to a reader.
struct AttentionKind {
  std::string name;                     // for AttendRequest::kind
  std::string title;                    // "additive (Bahdanau)"
  std::string formula;                  // "softmax(scale * Q K^T + mask) V"
  std::string time;                     // of n queries over n keys: "O(n^2 d)"
  std::string memory;                   // beyond operands and output
  std::string use;                      // where to use it
  bool has_attention_weights = false;   // it can answer with them
  std::vector<std::string> parameters;  // "query_weight [units, query dim]"
};

// A loaded attention module, whose name AttendRequest::model takes.
struct AttentionModule {
  std::string name;
  std::string state;       // as ModelInfo::state
  std::string type;        // "multi_head", or "encoder" for a stack of transformer layers
  std::string dtype;       // number format of the computation
  std::string activation;  // encoder: "relu" or "gelu"
  int64_t layers = 0, heads = 0;
  int64_t hidden = 0;  // width of a query's row
  int64_t key_dim = 0, value_dim = 0;
  int64_t ffn = 0;          // encoder: width of the feed-forward layer
  bool norm_first = false;  // encoder: layer norm stands before attention and feed-forward
};

// The attention that a server offers, and the limits of one request. Attend refuses a request
// beyond a limit with an error that names the limit.
struct AttentionOffer {
  std::vector<AttentionKind> kinds;
  std::vector<AttentionModule> modules;
  int64_t max_attention_tokens = 0;      // queries and keys of all sequences together
  int64_t max_attention_bytes = 0;       // scratch memory during the computation
  int64_t max_attention_operations = 0;  // multiply-adds, estimated
  int64_t max_response_bytes = 0;        // tensors of the answer, counted as f32
  int64_t max_request_bytes = 0;         // the message of the request
};

}  // namespace attendant::client
