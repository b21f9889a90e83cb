// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/row_phase.h"

#include <algorithm>

#include "kernels/core/base/int_math.h"
#include "kernels/cpu/simd/by_dtype.h"

namespace attendant::cpu {
namespace {

int64_t OperandBytes(DType dtype) { return ByDType<int64_t>(dtype, 4, 2, 1); }

MatmulRow RowOf(TensorView<float, 2> matmul_out, int64_t row, const OperandRow& operand,
                const PackedLinear& linear) {
  return {matmul_out.row(row), operand.quantization, linear.column_scales.data(),
          linear.column_offsets.data()};
}

// What the operand of `linear` is multiplied by, as OperandRow has it.
const float* SmoothingOf(const PackedLinear& linear) {
  return linear.smoothing_factors.empty() ? nullptr : linear.smoothing_factors.data();
}

// y += x W for the weights that `linear` keeps apart.
void AddOutliers(const PackedLinear& linear, const OperandRow& x, float* y) {
  for (const OutlierWeight& outlier : linear.outliers) {
    const int32_t value = static_cast<const uint8_t*>(x.values)[outlier.input];
    const auto centered = static_cast<float>(value - x.quantization->zero_point);
    y[outlier.output] += outlier.value * (centered * x.quantization->scale);
  }
}

SlicedMatmul Sliced(const Matmul& matmul, int threads) {
  return SlicedMatmul(matmul, threads, kMaxBlockRows);
}

}  // namespace

int64_t ChooseBlockRows(int64_t tokens, int64_t max_rows, int threads) {
  const int64_t rounds = CeilDivide(tokens, max_rows * threads);
  return std::min(RoundUpRows(CeilDivide(tokens, rounds * threads)), max_rows);
}

RowPhase::RowPhase(const CpuEncoder& encoder, int threads, Arena& arena)
    : encoder_(encoder),
      kernels_(encoder.row_kernels()),
      dtype_(encoder.info().dtype),
      matmuls_{Sliced(*encoder.matmuls().qkv, threads),
               Sliced(*encoder.matmuls().attention_output, threads),
               Sliced(*encoder.matmuls().ffn_up, threads),
               Sliced(*encoder.matmuls().ffn_down, threads)} {
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) threads_.push_back(MakeThread(arena));
}

RowPhase::Operand RowPhase::AllocateOperand(Arena& arena, int64_t columns) const {
  const int64_t row_bytes = columns * OperandBytes(dtype_);
  return {.values = arena.Allocate<std::byte>(kMaxBlockRows * row_bytes),
          .row_bytes = row_bytes,
          .quantization =
              dtype_ == DType::kInt8 ? arena.Allocate<RowQuantization>(kMaxBlockRows) : nullptr};
}

RowPhase::ThreadState RowPhase::MakeThread(Arena& arena) const {
  const EncoderConfig& config = encoder_.config();
  const size_t scratchpad_bytes =
      std::max({matmuls_.qkv.scratchpad_bytes(), matmuls_.attention_output.scratchpad_bytes(),
                matmuls_.ffn_up.scratchpad_bytes(), matmuls_.ffn_down.scratchpad_bytes()});
  void* scratchpad = arena.Allocate<std::byte>(static_cast<int64_t>(scratchpad_bytes));
  return ThreadState{
      .qkv = LinearExecutor(matmuls_.qkv, scratchpad),
      .attention_output = LinearExecutor(matmuls_.attention_output, scratchpad),
      .ffn_up = LinearExecutor(matmuls_.ffn_up, scratchpad),
      .ffn_down = LinearExecutor(matmuls_.ffn_down, scratchpad),
      .scratch = {.matmul_out = arena.Allocate2<float>(kMaxBlockRows, config.hidden),
                  .wide_matmul_out = arena.Allocate2<float>(
                      kMaxBlockRows, std::max(config.ffn, 3 * config.hidden)),
                  .states = AllocateOperand(arena, config.hidden),
                  .intermediate = AllocateOperand(arena, config.ffn)},
      .row_scratch = arena.Allocate<float>(config.ffn),
  };
}

bool RowPhase::Run(const PackedBatch& batch, int64_t layer, const Activations& activations,
                   ThreadPool& pool) {
  batch_ = &batch;
  activations_ = activations;
  pool_ = &pool;
  for (ThreadState& thread : threads_) thread.failed = false;
  const int64_t tokens = batch.tokens();
  // One block's worth of rows is faster together than cut by rows, measured from 16 to 128 tokens
  // on two threads: 10 % at 112, where blocks of 64 and 48 rows end apart, equal where they do not.
  if (tokens <= kMaxBlockRows && pool.threads() > 1) {
    RunBlock({.begin = 0, .rows = tokens, .together = true}, layer);
  } else {
    const int64_t block_rows = ChooseBlockRows(tokens, kMaxBlockRows, pool.threads());
    pool.ParallelFor(CeilDivide(tokens, block_rows), [&](int64_t index, int thread) {
      const int64_t begin = index * block_rows;
      RunBlock({.begin = begin, .rows = std::min(block_rows, tokens - begin), .thread = thread},
               layer);
    });
  }
  return std::none_of(threads_.begin(), threads_.end(),
                      [](const ThreadState& thread) { return thread.failed; });
}

void RowPhase::RunBlock(const Block& block, int64_t layer) {
  const std::vector<PackedLayer>& layers = encoder_.layers();
  const PackedLinear* qkv =
      layer < encoder_.config().layers ? &layers[static_cast<size_t>(layer)].qkv : nullptr;
  if (layer == 0) {
    Embed(block);
  } else {
    const PackedLayer& weights = layers[static_cast<size_t>(layer - 1)];
    AddAttention(block, weights);
    FeedForward(block, weights, qkv);
  }
  if (qkv != nullptr) ProjectQkv(block, *qkv);
}

// Calls body(row, thread) for every row of the block, counted from its first.
template <typename Body>
void RowPhase::ForEachRow(const Block& block, Body body) {
  if (!block.together) {
    for (int64_t row = 0; row < block.rows; ++row) body(row, block.thread);
    return;
  }
  const int64_t share = CeilDivide(block.rows, pool_->threads());
  pool_->ParallelFor(CeilDivide(block.rows, share), [&](int64_t index, int thread) {
    const int64_t end = std::min(block.rows, (index + 1) * share);
    for (int64_t row = index * share; row < end; ++row) body(row, thread);
  });
}

// y = x w [+ bias] for the block's rows.
void RowPhase::Multiply(const Block& block, LinearExecutor ThreadState::*executor,
                        const PackedLinear& linear, const void* x, const float* bias, void* y) {
  if (!block.together) {
    ThreadState& state = StateOf(block.thread);
    state.failed |= !(state.*executor).Run(block.rows, x, linear, bias, y);
    return;
  }
  pool_->ParallelFor((StateOf(0).*executor).slices(), [&](int64_t index, int thread) {
    ThreadState& state = StateOf(thread);
    state.failed |= !(state.*executor).RunSlice(index, block.rows, x, linear, bias, y);
  });
}

// states = LayerNorm(token_embedding + segment_embedding + position_embedding)
void RowPhase::Embed(const Block& block) {
  const EncoderWeights& tables = encoder_.embeddings();
  const LayerNormArgs norm{tables.embedding_norm.gamma.data(), tables.embedding_norm.beta.data(),
                           encoder_.config().hidden, encoder_.config().layer_norm_epsilon};
  const float* smoothing = SmoothingOf(encoder_.layers().front().qkv);
  ForEachRow(block, [&](int64_t row, int thread) {
    const auto i = static_cast<size_t>(block.begin + row);
    float* states = activations_.states.row(block.begin + row);
    float* token = StateOf(thread).scratch.matmul_out.row(0);
    encoder_.kernels().embed(encoder_.token_embedding().Row(batch_->token_ids()[i], token),
                             tables.segment_embedding.row(batch_->segment_ids()[i]),
                             tables.position_embedding.row(batch_->positions()[i]), norm, states);
    kernels_.convert(states, norm.hidden, ScratchOf(block).states.row(row, smoothing));
  });
}

// The block's states as the next matmul reads them: themselves in f32.
RowPhase::Operand RowPhase::StatesOperand(const Block& block) {
  const Operand& converted = ScratchOf(block).states;
  if (dtype_ != DType::kF32) return converted;
  return {.values = reinterpret_cast<std::byte*>(activations_.states.row(block.begin)),
          .row_bytes = converted.row_bytes};
}

// The block's attention outputs likewise; attention writes them in f32 for int8, since a row's
// range is known only when all heads are done.
RowPhase::Operand RowPhase::ContextOperand(const Block& block) {
  const Operand& converted = ScratchOf(block).states;
  if (dtype_ != DType::kInt8) {
    auto* context = reinterpret_cast<std::byte*>(activations_.context.data());
    return {.values = context + block.begin * converted.row_bytes,
            .row_bytes = converted.row_bytes};
  }
  ForEachRow(block, [&](int64_t row, int) {
    kernels_.convert(activations_.context.row(block.begin + row), encoder_.config().hidden,
                     converted.row(row));
  });
  return converted;
}

// states = LayerNorm(states + context W_o + b_o)
void RowPhase::AddAttention(const Block& block, const PackedLayer& weights) {
  const Operand context = ContextOperand(block);
  Multiply(block, &ThreadState::attention_output, weights.attention_output, context.values, nullptr,
           ScratchOf(block).matmul_out.data());
  Normalize(block, weights.attention_output, context,
            {weights.attention_gamma.data(), weights.attention_beta.data(),
             encoder_.config().hidden, encoder_.config().layer_norm_epsilon},
            &weights.ffn_up);
}

// intermediate = activation(states W_up + b_up);  states = LayerNorm(states + intermediate W_down +
// b_down)
void RowPhase::FeedForward(const Block& block, const PackedLayer& weights,
                           const PackedLinear* next) {
  const EncoderConfig& config = encoder_.config();
  const Operand states = StatesOperand(block);
  const Scratch& scratch = ScratchOf(block);
  Multiply(block, &ThreadState::ffn_up, weights.ffn_up, states.values, nullptr,
           scratch.wide_matmul_out.data());
  const TensorView<float, 2> matmul_out(scratch.wide_matmul_out.data(), {block.rows, config.ffn});
  const RowKernels::Activate activate =
      config.activation == Activation::kGeluErf    ? kernels_.gelu_erf
      : config.activation == Activation::kGeluTanh ? kernels_.gelu_tanh
                                                   : kernels_.relu;
  ForEachRow(block, [&](int64_t row, int thread) {
    activate(RowOf(matmul_out, row, states.row(row), weights.ffn_up), weights.ffn_up.bias.data(),
             config.ffn, StateOf(thread).row_scratch, scratch.intermediate.row(row));
  });
  Multiply(block, &ThreadState::ffn_down, weights.ffn_down, scratch.intermediate.values, nullptr,
           scratch.matmul_out.data());
  Normalize(
      block, weights.ffn_down, scratch.intermediate,
      {weights.ffn_gamma.data(), weights.ffn_beta.data(), config.hidden, config.layer_norm_epsilon},
      next);
}

// states = LayerNorm(states + matmul + bias), where the matmul is of `operand` and `linear`, and
// the operand of `next`, unless nothing follows.
void RowPhase::Normalize(const Block& block, const PackedLinear& linear, const Operand& operand,
                         const LayerNormArgs& norm, const PackedLinear* next) {
  const Scratch& scratch = ScratchOf(block);
  ForEachRow(block, [&](int64_t row, int) {
    float* states = activations_.states.row(block.begin + row);
    const OperandRow x = operand.row(row);
    AddOutliers(linear, x, states);
    OperandRow result;
    if (next != nullptr) result = scratch.states.row(row, SmoothingOf(*next));
    kernels_.add_layer_norm(states, RowOf(scratch.matmul_out, row, x, linear), linear.bias.data(),
                            norm, result);
  });
}

void RowPhase::ProjectQkv(const Block& block, const PackedLinear& linear) {
  const Operand states = StatesOperand(block);
  std::byte* qkv = activations_.qkv.row(block.begin);
  if (dtype_ != DType::kInt8) {
    Multiply(block, &ThreadState::qkv, linear, states.values, linear.bias.data(), qkv);
    return;
  }
  const int64_t columns = 3 * encoder_.config().hidden;
  float* wide_matmul_out = ScratchOf(block).wide_matmul_out.data();
  Multiply(block, &ThreadState::qkv, linear, states.values, nullptr, wide_matmul_out);
  const TensorView<float, 2> matmul_out(wide_matmul_out, {block.rows, columns});
  ForEachRow(block, [&](int64_t row, int) {
    kernels_.add_bias(RowOf(matmul_out, row, states.row(row), linear), linear.bias.data(), columns,
                      activations_.qkv.row(block.begin + row));
  });
}

}  // namespace attendant::cpu
