// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/reference_backend.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/distances.h"
#include "kernels/core/base/token_scales.h"
#include "kernels/core/pooling.h"
#include "kernels/core/status_macros.h"
#include "kernels/reference/reference_math.h"

namespace attendant {
namespace {

using reference::Matrix;

class ReferenceEncoder;

class ReferenceSession final : public Session {
 public:
  ReferenceSession(const ReferenceEncoder& encoder, const SessionLimits& limits);
  absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) override;

 private:
  const ReferenceEncoder& encoder_;
  SessionLimits limits_;
  Matrix states_;  // [max tokens, hidden]
  Matrix pooled_;  // [max sequences, hidden]
};

class ReferenceEncoder final : public PreparedEncoder {
 public:
  ReferenceEncoder(const EncoderConfig& config, EncoderWeights weights)
      : config_(config),
        weights_(std::move(weights)),
        alibi_slopes_(AlibiSlopes(config.heads)),
        info_{.backend = "reference", .isa = "plain"} {
    if (config.score_bias == ScoreBias::kDisentangled) ProjectDistances();
  }

  const EncoderConfig& config() const override { return config_; }
  const PreparedInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Session>> NewSession(const SessionLimits& limits,
                                                      const ThreadTeam& /*team*/) const override {
    try {
      return std::make_unique<ReferenceSession>(*this, limits);
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("the session does not fit in memory");
    }
  }

  // The whole encoder on sequence `index` of the batch: [len, hidden]. Writes what `wanted` asks
  // for.
  Matrix Encode(const PackedBatch& batch, int64_t index, const LayerOutputs& wanted) const {
    return reference::RunLayers(
        config_, weights_, Embed(batch, index),
        [&](int64_t layer, const Matrix& q, const Matrix& k, const Matrix& v) {
          const std::span<const int32_t> positions = batch.positions().subspan(
              static_cast<size_t>(batch.seq_start(index)), static_cast<size_t>(batch.len(index)));
          const EncoderLayerWeights& weights = weights_.layers[static_cast<size_t>(layer)];
          const Matrix turned_q = Placed(q, config_.heads, weights.query_norm, layer, positions),
                       turned_k =
                           Placed(k, config_.key_heads(), weights.key_norm, layer, positions);
          const auto offset = [&](int64_t head, int64_t query, int64_t key) {
            if (key >= batch.keys(index)) return -std::numeric_limits<double>::infinity();
            const int64_t distance = int64_t{positions[static_cast<size_t>(key)]} -
                                     positions[static_cast<size_t>(query)];
            return config_.score_bias == ScoreBias::kDisentangled
                       ? Disentangled(layer, head, {turned_q, query}, {turned_k, key}, distance)
                       : OffsetOf(layer, head, distance);
          };
          const reference::Scores scores{config_.heads, static_cast<double>(config_.score_scale()),
                                         offset};
          WriteAttentionWeights(turned_q, turned_k, layer, scores, wanted);
          return reference::SelfAttention(turned_q, turned_k, v, scores);
        },
        [&](int64_t layer, const Matrix& x) { WriteHiddenState(x, layer, wanted); });
  }

 private:
  Matrix Embed(const PackedBatch& batch, int64_t index) const {
    Matrix sum(batch.len(index), config_.input_width());
    std::vector<float> scales(static_cast<size_t>(batch.tokens()), 1);
    if (config_.dropped_token >= 0) {
      WriteTokenScales(batch, config_.dropped_token, scales.data());
    }
    for (int64_t t = 0; t < sum.rows; ++t) {
      const auto row = static_cast<size_t>(batch.seq_start(index) + t);
      const float* token = weights_.token_embedding.row(batch.token_ids()[row]);
      const float* segment = weights_.segment_embedding.row(batch.segment_ids()[row]);
      for (int64_t i = 0; i < sum.columns; ++i) {
        sum.at(t, i) = token[i] * config_.embedding_scale * scales[row] + segment[i];
      }
      if (config_.positions != Positions::kLearned) continue;
      const float* position = weights_.position_embedding.row(batch.positions()[row]);
      for (int64_t i = 0; i < sum.columns; ++i) sum.at(t, i) += position[i];
    }
    if (config_.embedding_norm) {
      sum = reference::Normalize(sum, weights_.embedding_norm, config_.norm_kind,
                                 config_.layer_norm_epsilon);
    }
    return config_.projects_embeddings() ? reference::Linear(sum, weights_.embedding_projection)
                                         : sum;
  }

  // Queries or keys with their norm and rotary positions, if the encoder has them.
  Matrix Placed(Matrix x, int64_t heads, const LayerNormWeights& norm, int64_t layer,
                std::span<const int32_t> positions) const {
    if (config_.query_key_norm != QueryKeyNorm::kNone) {
      const bool whole = config_.query_key_norm == QueryKeyNorm::kWhole;
      x = reference::NormalizeHeads(x, whole ? 1 : heads, norm,
                                    whole ? config_.norm_kind : NormKind::kRms,
                                    config_.layer_norm_epsilon);
    }
    if (config_.positions != Positions::kRotary) return x;
    return reference::Rotate(
        x, heads, config_.is_local(layer) ? config_.local_rotary : config_.rotary, positions);
  }

  // The embeddings of distances as the queries and keys of each layer.
  void ProjectDistances() {
    Matrix table(config_.bias_buckets, config_.hidden);
    std::copy_n(weights_.score_bias.data(), weights_.score_bias.size(), table.values.begin());
    for (const EncoderLayerWeights& layer : weights_.layers) {
      distance_queries_.push_back(reference::Linear(table, layer.query));
      distance_keys_.push_back(reference::Linear(table, layer.key));
    }
  }

  struct Row {
    const Matrix& matrix;
    int64_t index;
  };

  // The terms added to the score of a query and a key `distance` behind it.
  double Disentangled(int64_t layer, int64_t head, const Row& query, const Row& key,
                      int64_t distance) const {
    const auto index = static_cast<size_t>(layer);
    const int64_t head_dim = config_.head_dim();
    const int64_t bucket =
        DisentangledBucket(distance, config_.bias_buckets, config_.bias_max_distance);
    return static_cast<double>(config_.score_scale()) *
           (reference::DotOfHead(query.matrix, query.index, distance_keys_[index], bucket, head_dim,
                                 head) +
            reference::DotOfHead(key.matrix, key.index, distance_queries_[index], bucket, head_dim,
                                 head));
  }

  // The same of other kinds, which do not depend on the query and the key.
  double OffsetOf(int64_t layer, int64_t head, int64_t distance) const {
    if (config_.is_local(layer) && std::abs(distance) > config_.window) return -INFINITY;
    if (config_.causal && distance > 0) return -INFINITY;
    switch (config_.score_bias) {
      case ScoreBias::kNone:
        return 0;
      case ScoreBias::kAlibi:
        return -static_cast<double>(alibi_slopes_[static_cast<size_t>(head)]) *
               static_cast<double>(std::abs(distance));
      case ScoreBias::kBuckets:
        return weights_.score_bias.row(
            DistanceBucket(distance, config_.bias_buckets, config_.bias_max_distance))[head];
      case ScoreBias::kDisentangled:
        break;  // it does depend on them
    }
    return 0;
  }

  // x [len, hidden] is what layer `layer` reads.
  static void WriteHiddenState(const Matrix& x, int64_t layer, const LayerOutputs& wanted) {
    for (size_t i = 0; i < wanted.hidden_layers.size(); ++i) {
      if (wanted.hidden_layers[i] != layer) continue;
      std::copy(x.values.begin(), x.values.end(), wanted.hidden_states + i * x.values.size());
    }
  }

  // q, k [len, hidden]
  void WriteAttentionWeights(const Matrix& q, const Matrix& k, int64_t layer,
                             const reference::Scores& scores, const LayerOutputs& wanted) const {
    float* out = wanted.attention_weights;
    const int64_t values = wanted.queries(q.rows) * q.rows;
    for (const int32_t wanted_layer : wanted.attention_layers) {
      for (const int32_t head : wanted.attention_heads) {
        if (wanted_layer == layer) {
          const Matrix weights = reference::AttentionWeights(q, k, head, scores);
          std::copy_n(weights.values.begin(), values, out);
        }
        out += values;
      }
    }
  }

  EncoderConfig config_;
  EncoderWeights weights_;
  std::vector<float> alibi_slopes_;                       // [heads]
  std::vector<Matrix> distance_queries_, distance_keys_;  // [layers][bias_buckets, context_width]
  PreparedInfo info_;
};

ReferenceSession::ReferenceSession(const ReferenceEncoder& encoder, const SessionLimits& limits)
    : encoder_(encoder),
      limits_(limits),
      states_(limits.max_batch_tokens, encoder.config().hidden),
      pooled_(limits.max_batch_sequences, encoder.config().hidden) {}

absl::Status ReferenceSession::Run(const PackedBatch& batch, const OutputSpec& spec,
                                   Outputs& outputs) {
  ATTENDANT_RETURN_IF_ERROR(CheckSessionLimits(batch, spec, limits_));
  const int64_t hidden = encoder_.config().hidden;
  for (int64_t i = 0; i < batch.batch(); ++i) {
    const LayerOutputs inner =
        spec.layers.empty() ? LayerOutputs{} : spec.layers[static_cast<size_t>(i)];
    const Matrix states = encoder_.Encode(batch, i, inner);
    std::copy(states.values.begin(), states.values.end(), &states_.at(batch.seq_start(i), 0));
    const SequenceOutputs& wanted = spec.sequences[static_cast<size_t>(i)];
    if (wanted.pooling == Pooling::kNone) continue;
    PoolSequence({states.values.data(), {states.rows, hidden}}, wanted, &pooled_.at(i, 0));
  }
  outputs.last_hidden_state = {states_.values.data(), {batch.tokens(), hidden}};
  outputs.pooled = {pooled_.values.data(), {batch.batch(), hidden}};
  return absl::OkStatus();
}

class ReferenceBackend final : public Backend {
 public:
  absl::string_view name() const override { return "reference"; }
  DType preferred_dtype() const override { return DType::kF32; }
  absl::Status Supports(DType dtype) const override {
    if (dtype == DType::kF32) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat("the reference back end computes in f32, not in ", DTypeName(dtype)));
  }

  absl::StatusOr<std::unique_ptr<PreparedEncoder>> Prepare(const EncoderConfig& config,
                                                           EncoderWeights weights,
                                                           DType dtype) const override {
    ATTENDANT_RETURN_IF_ERROR(ValidateWeights(config, weights));
    ATTENDANT_RETURN_IF_ERROR(Supports(dtype));
    EncoderConfig computed = config;
    computed.input = EncoderInput::kTokens;
    ATTENDANT_RETURN_IF_ERROR(CheckComputed(name(), computed, config));
    return std::make_unique<ReferenceEncoder>(config, std::move(weights));
  }
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace attendant
