// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/model_check.h"

#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/model/encoder_shape.h"

namespace attendant::cuda {
namespace {

// Of the kernels that hold a row in registers (kernels.h).
constexpr int64_t kMaxHidden = 8192;

struct NamedCount {
  const char* name;
  int64_t count;
};

Status CheckCounts(const AttendantCudaConfig& config) {
  for (const NamedCount& one :
       {NamedCount{"layers", config.layers}, NamedCount{"heads", config.heads},
        NamedCount{"hidden", config.hidden}, NamedCount{"ffn", config.ffn},
        NamedCount{"vocab", config.vocab}, NamedCount{"max_positions", config.max_positions},
        NamedCount{"segment_types", config.segment_types}}) {
    if (one.count <= 0 || one.count > INT32_MAX) {
      return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT, "%s is %lld", one.name,
                           static_cast<long long>(one.count));
    }
  }
  for (const NamedCount& one :
       {NamedCount{"head_width", config.head_width}, NamedCount{"kv_heads", config.kv_heads},
        NamedCount{"window", config.window},
        NamedCount{"embedding_width", config.embedding_width}}) {
    if (one.count < 0 || one.count > INT32_MAX) {
      return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT, "%s is %lld", one.name,
                           static_cast<long long>(one.count));
    }
  }
  return {};
}

Status CheckSwitches(const AttendantCudaConfig& config) {
  if (config.heads % KeyHeads(config) == 0 && config.norm_place >= ATTENDANT_CUDA_NORM_POST &&
      config.norm_place <= ATTENDANT_CUDA_NORM_BOTH && config.query_scale >= 0 &&
      config.embedding_scale >= 0) {
    return {};
  }
  return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT,
                       "heads %lld, kv_heads %lld, norm_place %d, query_scale %g and "
                       "embedding_scale %g do not make an encoder",
                       static_cast<long long>(config.heads),
                       static_cast<long long>(config.kv_heads), static_cast<int>(config.norm_place),
                       static_cast<double>(config.query_scale),
                       static_cast<double>(config.embedding_scale));
}

bool HasAll(const AttendantCudaConfig& config, const AttendantCudaLayer& layer, bool first) {
  for (const AttendantCudaLinear* linear :
       {&layer.query, &layer.key, &layer.value, &layer.attention_output, &layer.ffn_up,
        &layer.ffn_down}) {
    if (linear->weight == nullptr) return false;
  }
  if (config.gated_ffn != 0 && layer.ffn_gate.weight == nullptr) return false;
  if (config.norm_place == ATTENDANT_CUDA_NORM_BOTH &&
      (layer.attention_output_norm.gamma == nullptr || layer.ffn_output_norm.gamma == nullptr)) {
    return false;
  }
  const bool bare = first && config.norm_place == ATTENDANT_CUDA_NORM_PRE;
  return layer.ffn_norm.gamma != nullptr && (bare || layer.attention_norm.gamma != nullptr) &&
         (layer.query_norm == nullptr) == (layer.key_norm == nullptr) &&
         (layer.whole_query_norm.gamma == nullptr) == (layer.whole_key_norm.gamma == nullptr);
}

}  // namespace

Status CheckConfig(const AttendantCudaConfig& config, DType dtype) {
  ATTENDANT_CUDA_TRY(CheckCounts(config));
  ATTENDANT_CUDA_TRY(CheckSwitches(config));
  const auto hidden = static_cast<long long>(config.hidden);
  const auto heads = static_cast<long long>(config.heads);
  if ((config.head_width == 0 && hidden % heads != 0) || !(config.layer_norm_epsilon > 0) ||
      config.activation < ATTENDANT_CUDA_GELU_ERF || config.activation > ATTENDANT_CUDA_SILU) {
    return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT,
                         "hidden %lld, heads %lld, layer_norm_epsilon %g and activation %d do not "
                         "make an encoder",
                         hidden, heads, static_cast<double>(config.layer_norm_epsilon),
                         static_cast<int>(config.activation));
  }
  // Rows are read 16 bytes at a time, and that is also what cuBLASLt wants of them.
  const int64_t multiple = dtype == DType::kFp8 ? 16 : 8;
  if (hidden % multiple != 0 || hidden > kMaxHidden || config.ffn % multiple != 0) {
    return Status::Error(
        ATTENDANT_CUDA_UNIMPLEMENTED,
        "hidden %lld and ffn %lld must be multiples of %lld on a GPU in %s, hidden "
        "at most %lld",
        hidden, static_cast<long long>(config.ffn), static_cast<long long>(multiple),
        DTypeName(dtype), static_cast<long long>(kMaxHidden));
  }
  if (config.embedding_width % multiple != 0 || config.embedding_width > kMaxHidden) {
    return Status::Error(ATTENDANT_CUDA_UNIMPLEMENTED,
                         "embedding_width %lld must be a multiple of %lld on a GPU in %s, at most "
                         "%lld",
                         static_cast<long long>(config.embedding_width),
                         static_cast<long long>(multiple), DTypeName(dtype),
                         static_cast<long long>(kMaxHidden));
  }
  if (!HasAttention(StateDType(dtype), HeadDim(config))) {
    return Status::Error(ATTENDANT_CUDA_UNIMPLEMENTED,
                         "attention has no kernel for head_dim %lld in this format",
                         static_cast<long long>(HeadDim(config)));
  }
  if (ContextWidth(config) % multiple != 0 || KeyWidth(config) % multiple != 0) {
    return Status::Error(ATTENDANT_CUDA_UNIMPLEMENTED,
                         "heads and kv_heads times head_dim, %lld and %lld, must be multiples of "
                         "%lld on a GPU in %s",
                         static_cast<long long>(ContextWidth(config)),
                         static_cast<long long>(KeyWidth(config)), static_cast<long long>(multiple),
                         DTypeName(dtype));
  }
  return {};
}

Status CheckTensors(const AttendantCudaConfig& config, const AttendantCudaWeights& weights) {
  bool all = weights.token_embedding != nullptr && weights.segment_embedding != nullptr &&
             weights.layers != nullptr &&
             (!ProjectsEmbeddings(config) || weights.embedding_projection.weight != nullptr);
  for (int64_t i = 0; all && i < config.layers; ++i) {
    const AttendantCudaLayer& layer = weights.layers[i];
    all = HasAll(config, layer, i == 0) &&
          (weights.rotary == nullptr || layer.local == 0 || weights.local_rotary != nullptr);
    if (all && layer.whole_query_norm.gamma != nullptr && ContextWidth(config) > kMaxHidden) {
      return Status::Error(ATTENDANT_CUDA_UNIMPLEMENTED,
                           "queries of %lld values have a norm, on a GPU they have at most %lld",
                           static_cast<long long>(ContextWidth(config)),
                           static_cast<long long>(kMaxHidden));
    }
  }
  return all ? Status() : Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT, "a tensor is null");
}

}  // namespace attendant::cuda
