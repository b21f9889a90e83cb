// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/cpu_encoder.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/encoder/cpu_session.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::cpu {
namespace {

// Rows of the token table that one task copies.
constexpr int64_t kTableRows = 1024;

TensorView<const float, 2> CopyInto(Arena& arena, TensorView<const float, 2> table) {
  auto* copy = arena.Allocate<float>(table.size());
  std::copy_n(table.data(), table.size(), copy);
  return {copy, table.dims()};
}

int64_t PositionRows(const EncoderConfig& config) {
  return config.positions == Positions::kLearned ? config.max_positions : 1;
}

TensorView<const float, 2> PositionTable(Arena& arena, const EncoderConfig& config,
                                         const EncoderWeights& weights) {
  if (config.positions == Positions::kLearned) return CopyInto(arena, weights.position_embedding);
  auto* zeros = arena.Allocate<float>(config.input_width());
  std::fill_n(zeros, config.input_width(), 0.0f);
  return {zeros, {1, config.input_width()}};
}

// The memory of the tables.
int64_t TableBytes(const EncoderConfig& config, DType dtype) {
  Arena measure;
  EmbeddingTable(config.vocab, config.input_width(), dtype, measure);
  for (int64_t rows : {PositionRows(config), config.segment_types}) {
    measure.Allocate<float>(rows * config.input_width());
  }
  return measure.used_bytes();
}

}  // namespace

CpuEncoder::CpuEncoder(PackedLayers layers, DisentangledScores disentangled_scores,
                       const EncoderWeights& weights, int load_threads)
    : layers_(std::move(layers)),
      memory_(TableBytes(config(), layers_.dtype)),
      embeddings_{
          .tokens = {config().vocab, config().input_width(), layers_.dtype, memory_},
          .positions = PositionTable(memory_, config(), weights),
          .learned = config().positions == Positions::kLearned,
          .segments = CopyInto(memory_, weights.segment_embedding),
          .norm = config().embedding_norm ? PackedNorm(weights.embedding_norm) : PackedNorm()},
      relative_scores_(config(), weights),
      disentangled_scores_(std::move(disentangled_scores)) {
  RunLoadTasks(load_threads, CeilDivide(config().vocab, kTableRows), [&](int64_t index) {
    const int64_t begin = index * kTableRows;
    embeddings_.tokens.FillRows(weights.token_embedding, begin,
                                std::min(config().vocab, begin + kTableRows),
                                config().embedding_scale);
  });
  const int64_t f32_rows = PositionRows(config()) + config().segment_types + 2;
  info_ = {.backend = "cpu",
           .isa = std::string(CpuIsaName(layers_.level.isa)),
           .matmul_implementation = layers_.matmul_implementation(),
           .dtype = layers_.dtype,
           .weight_bytes = layers_.bytes() + embeddings_.tokens.bytes() + relative_scores_.bytes() +
                           disentangled_scores_.bytes() +
                           f32_rows * config().input_width() * static_cast<int64_t>(sizeof(float))};
}

absl::StatusOr<std::unique_ptr<CpuEncoder>> CpuEncoder::Create(const EncoderConfig& config,
                                                               EncoderWeights weights,
                                                               const PackOptions& options) {
  ATTENDANT_RETURN_IF_ERROR(ValidateWeights(config, weights));
  EncoderConfig computed = config;
  computed.input = EncoderInput::kTokens;
  ATTENDANT_RETURN_IF_ERROR(CheckComputed("cpu", computed, config));
  try {
    ATTENDANT_ASSIGN_OR_RETURN(PackedLayers layers, PackedLayers::Create(config, weights, options));
    ATTENDANT_ASSIGN_OR_RETURN(DisentangledScores disentangled,
                               DisentangledScores::Create(layers, weights, options.load_threads));
    return std::unique_ptr<CpuEncoder>(
        new CpuEncoder(std::move(layers), std::move(disentangled), weights, options.load_threads));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the packed weights do not fit in memory");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("cannot prepare the model: ", error.what()));
  }
}

absl::StatusOr<std::unique_ptr<Session>> CpuEncoder::NewSession(const SessionLimits& limits,
                                                                const ThreadTeam& team) const {
  try {
    const ScopedPlacement near_the_team(team);
    return std::make_unique<CpuSession>(*this, limits, team);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a session for batches of ", limits.max_batch_tokens, " tokens does not fit in memory"));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("cannot make a session: ", error.what()));
  }
}

}  // namespace attendant::cpu
