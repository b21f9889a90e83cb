// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/cuda_interface.h"

// Sizes that follow from a configuration, whose zeros stand for the usual values.
namespace attendant::cuda {

// The width of the embeddings, and whether a matmul projects them to hidden.
inline int64_t InputWidth(const AttendantCudaConfig& config) {
  return config.embedding_width > 0 ? config.embedding_width : config.hidden;
}
inline bool ProjectsEmbeddings(const AttendantCudaConfig& config) {
  return config.embedding_width > 0;
}
inline int64_t HeadDim(const AttendantCudaConfig& config) {
  return config.head_width > 0 ? config.head_width : config.hidden / config.heads;
}
// Heads of keys, and of values.
inline int64_t KeyHeads(const AttendantCudaConfig& config) {
  return config.kv_heads > 0 ? config.kv_heads : config.heads;
}
inline int64_t ContextWidth(const AttendantCudaConfig& config) {
  return config.heads * HeadDim(config);
}
inline int64_t KeyWidth(const AttendantCudaConfig& config) {
  return KeyHeads(config) * HeadDim(config);
}
inline int64_t QkvWidth(const AttendantCudaConfig& config) {
  return ContextWidth(config) + 2 * KeyWidth(config);
}
// The width of gate and up together.
inline int64_t FfnInputs(const AttendantCudaConfig& config) {
  return config.gated_ffn != 0 ? 2 * config.ffn : config.ffn;
}
inline float ScoreScale(const AttendantCudaConfig& config) {
  return config.query_scale > 0 ? config.query_scale
                                : 1.0f / std::sqrt(static_cast<float>(HeadDim(config)));
}
// Branches read normalized states, and the sum of all branches is kept beside.
inline bool NormsBefore(const AttendantCudaConfig& config) {
  return config.norm_place != ATTENDANT_CUDA_NORM_POST;
}

}  // namespace attendant::cuda
