// SPDX-License-Identifier: Apache-2.0
#include "server/models/memory/estimate.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>

#include "kernels/checkpoints/checkpoint.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

// Of packed weights, in thousandths: int8 has scales, sums of columns and outliers beside them.
int64_t PackedBytes(int64_t values, DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return values * 1150 / 1000;
    case DType::kBf16:
      return values * 2;
    default:
      return values * kFloatBytes;
  }
}

struct StoredBytes {
  int64_t values = 0;
  int64_t converted_bytes = 0;  // f32 copies, of what is not stored as f32
};

StoredBytes Sum(const TensorStore& store) {
  StoredBytes sum;
  for (const auto& [name, tensor] : store.tensors()) {
    int64_t values = 1;
    for (const int64_t dim : tensor->dims) values *= dim;
    sum.values += values;
    if (tensor->dtype != "F32") sum.converted_bytes += values * kFloatBytes;
  }
  return sum;
}

// As CpuSession and LayerRunner allocate: states, context and qkv of a batch, and for each thread
// the rows that it takes through a layer.
int64_t SessionBytes(const EncoderConfig& config, const SessionLimits& limits, int threads) {
  constexpr int64_t kBlockRows = 128;
  constexpr int64_t kGapQueries = 32;
  constexpr int64_t kThreadBytes = 256 << 10;  // of oneDNN and the thread itself
  const int64_t max_len = std::min(limits.max_batch_tokens, config.max_positions);
  const int64_t row = config.hidden + config.context_width() + config.qkv_width();
  const int64_t batch = limits.max_batch_tokens * row * kFloatBytes +
                        limits.max_batch_sequences * config.hidden * kFloatBytes;
  const int64_t columns =
      2 * config.hidden + config.ffn + std::max(config.ffn_inputs(), config.qkv_width());
  const int64_t attention = max_len * (2 * config.head_dim() + 64) * kFloatBytes;
  const int64_t bias = config.is_relative() ? max_len * kGapQueries * kFloatBytes : 0;
  return batch +
         threads * (kBlockRows * columns * kFloatBytes + 2 * attention + bias + kThreadBytes);
}

// What the CPU back end makes from positions: rotary tables, biases by distance.
int64_t TableBytes(const EncoderConfig& config) {
  int64_t values = 0;
  if (config.positions == Positions::kRotary) {
    values += (config.local_layers.any() ? 2 : 1) * config.max_positions * config.head_dim();
  }
  if (config.score_bias != ScoreBias::kNone) values += config.heads * 2 * config.max_positions;
  return values * kFloatBytes;
}

// What the libraries take for themselves at the first load: compiled kernels, above all.
constexpr int64_t kLibraryBytes = 24 << 20;

// What the tokenizer's tables take, for each byte of its file.
int64_t TokenizerBytes(const std::string& directory) {
  constexpr int64_t kBytesPerByte = 12;
  std::error_code absent;
  const auto bytes = std::filesystem::file_size(directory + "/tokenizer.json", absent);
  return absent ? 0 : kBytesPerByte * static_cast<int64_t>(bytes);
}

}  // namespace

absl::StatusOr<MemoryEstimate> EstimateMemory(const std::string& directory,
                                              const EstimateOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<TensorStore> store,
                             TensorStore::Open(directory));
  const StoredBytes stored = Sum(*store);
  MemoryEstimate estimate{
      .weight_bytes = PackedBytes(stored.values, options.dtype),
      .load_bytes = stored.converted_bytes + TokenizerBytes(directory) + kLibraryBytes};
  const absl::StatusOr<EncoderConfig> config = ReadEncoderConfig(directory);
  if (!config.ok()) return estimate;  // an attention module, or loading says what is wrong
  for (const ThreadTeam& team : options.replicas) {
    estimate.session_bytes += SessionBytes(*config, options.limits, team.threads);
  }
  estimate.weight_bytes += TableBytes(*config);
  return estimate;
}

}  // namespace attendant
