// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/layer_runner.h"

#include <algorithm>
#include <utility>

#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/activation_kernel.h"
#include "kernels/cpu/simd/by_dtype.h"
#include "kernels/cpu/simd/denormals.h"

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

}  // namespace

Activations::Activations(const PackedLayers& layers, int64_t max_tokens, Arena& arena)
    : Activations(WithoutStates(layers, max_tokens, arena)) {
  states = arena.Allocate2<float>(RoundUpRows(max_tokens), layers.config.hidden);
}

Activations Activations::WithoutStates(const PackedLayers& layers, int64_t max_tokens,
                                       Arena& arena) {
  const int64_t rows = RoundUpRows(max_tokens);
  Activations all;
  all.qkv = arena.Allocate2<std::byte>(rows, layers.config.qkv_width() * layers.qkv_value_bytes());
  all.context = arena.Allocate2<float>(rows, layers.config.context_width());
  return all;
}

RowBlocks::RowBlocks(int64_t tokens, int64_t max_rows, int threads)
    : tokens_(tokens),
      count_(std::min(CeilDivide(tokens, max_rows * threads) * threads,
                      CeilDivide(tokens, kRowGranularity))) {}

int64_t RowBlocks::begin(int64_t index) const {
  return std::min(tokens_, RoundUpRows(index * tokens_ / count_));
}

LayerRunner::LayerRunner(const PackedLayers& layers, int threads, FewRows few_rows, Arena& arena)
    : layers_(layers),
      kernels_(layers.rows),
      dtype_(layers.dtype),
      few_rows_(threads > 1 ? few_rows : FewRows::kApart) {
  const int slices = few_rows_ == FewRows::kTogether ? threads : 1;
  matmuls_.reserve(kLinears);
  for (const auto& matmul : layers.matmuls) {
    if (matmul != nullptr) matmuls_.emplace_back(*matmul, slices, kMaxBlockRows);
  }
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) threads_.push_back(MakeThread(arena));
}

LayerRunner::Operand LayerRunner::AllocateOperand(Arena& arena, int64_t columns) const {
  const int64_t row_bytes = columns * OperandBytes(dtype_);
  return {.values = arena.Allocate<std::byte>(kMaxBlockRows * row_bytes),
          .row_bytes = row_bytes,
          .quantization =
              dtype_ == DType::kInt8 ? arena.Allocate<RowQuantization>(kMaxBlockRows) : nullptr};
}

LayerRunner::ThreadState LayerRunner::MakeThread(Arena& arena) const {
  const EncoderConfig& config = layers_.config;
  size_t scratchpad_bytes = 0;
  for (const SlicedMatmul& matmul : matmuls_) {
    scratchpad_bytes = std::max(scratchpad_bytes, matmul.scratchpad_bytes());
  }
  void* scratchpad = arena.Allocate<std::byte>(static_cast<int64_t>(scratchpad_bytes));
  std::vector<LinearExecutor> executors;
  for (const SlicedMatmul& matmul : matmuls_) executors.emplace_back(matmul, scratchpad);
  const Operand states = AllocateOperand(arena, config.hidden);
  const bool as_wide = config.context_width() == config.hidden;
  const bool convert_context = dtype_ == DType::kInt8 && !as_wide;
  return ThreadState{
      .executors = std::move(executors),
      .scratch = {.matmul_out = arena.Allocate2<float>(kMaxBlockRows, config.hidden),
                  .wide_matmul_out = arena.Allocate2<float>(
                      kMaxBlockRows,
                      std::max({config.ffn_inputs(), config.qkv_width(), config.input_width()})),
                  .states = states,
                  .context =
                      convert_context ? AllocateOperand(arena, config.context_width()) : states,
                  .intermediate = AllocateOperand(arena, config.ffn)},
      .row_scratch =
          arena.Allocate<float>(std::max({config.ffn, config.hidden, config.input_width()})),
  };
}

absl::Status LayerRunner::Run(const Tokens& tokens, Input input, Attention attention,
                              const Activations& activations, ThreadPool& pool) {
  positions_ = tokens.positions;
  input_ = &input;
  activations_ = &activations;
  pool_ = &pool;
  const int64_t layers = layers_.config.layers;
  for (int64_t layer = 0; RunRows(layer < layers ? tokens.count : tokens.last_count, layer);
       ++layer) {
    if (layer == layers) return absl::OkStatus();
    ATTENDANT_RETURN_IF_ERROR(attention(layer));
  }
  return absl::InternalError("oneDNN could not execute a matmul");
}

bool LayerRunner::RunRows(int64_t tokens, int64_t layer) {
  if (tokens == 0) return true;
  for (ThreadState& thread : threads_) thread.failed = false;
  // One block's worth of rows is faster together than cut by rows, measured from 16 to 128 tokens
  // on two threads: 10 % at 112, where blocks of 64 and 48 rows end apart, equal where they do not.
  if (tokens <= kMaxBlockRows && few_rows_ == FewRows::kTogether) {
    RunBlock({.begin = 0, .rows = tokens, .together = true}, layer);
  } else {
    const RowBlocks blocks(tokens, kMaxBlockRows, pool_->threads());
    pool_->ParallelFor(blocks.count(), [&](int64_t index, int thread) {
      const ScopedDenormalFlush flush;  // whatever the pool's threads do
      const int64_t begin = blocks.begin(index);
      RunBlock({.begin = begin, .rows = blocks.begin(index + 1) - begin, .thread = thread}, layer);
    });
  }
  return std::none_of(threads_.begin(), threads_.end(),
                      [](const ThreadState& thread) { return thread.failed; });
}

LayerRunner::Next LayerRunner::NextAttention(int64_t layer) const {
  if (layer == layers_.config.layers) return {};
  const PackedLayer& weights = layers_.layers[static_cast<size_t>(layer)];
  const bool normed = pre_norm() && (layer > 0 || layers_.config.first_attention_norm);
  return {&weights.linears[kQkv], normed ? &weights.attention_norm : nullptr};
}

void LayerRunner::RunBlock(const Block& block, int64_t layer) {
  const Next next = NextAttention(layer);
  if (layer == 0) {
    ReadInput(block, next);
  } else {
    const PackedLayer& weights = layers_.layers[static_cast<size_t>(layer - 1)];
    AddAttention(block, weights);
    FeedForward(block, weights, next);
  }
  if (next.linear != nullptr) return ProjectQkv(block, next, layer);
  if (!layers_.config.final_norm) return;
  ForEachRow(block, [&](int64_t row, int) {
    kernels_.layer_norm(activations_->states.row(block.begin + row), layers_.final_norm_args(), {});
  });
}

// Calls body(row, thread) for every row of the block, counted from its first.
template <typename Body>
void LayerRunner::ForEachRow(const Block& block, Body body) {
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

// y = x w for the block's rows, or what the matmul makes of it.
void LayerRunner::Multiply(const Block& block, LayerLinear linear, const PackedLinear& weights,
                           const Operand& x, void* y) {
  if (!block.together) {
    ThreadState& state = StateOf(block.thread);
    state.failed |= !state.executors[linear].Run(block.rows, x.values, x.quantization, weights, y);
    return;
  }
  pool_->ParallelFor(matmuls_[linear].slices(), [&](int64_t index, int thread) {
    ThreadState& state = StateOf(thread);
    state.failed |=
        !state.executors[linear].RunSlice(index, block.rows, x.values, x.quantization, weights, y);
  });
}

OperandRow LayerRunner::NextOperand(const Block& block, int64_t row, const Next& next) {
  if (next.linear == nullptr) return {};
  return ScratchOf(block).states.row(row, SmoothingOf(*next.linear));
}

// `norm` with the states left as they are.
LayerNormArgs LayerRunner::BesideStates(LayerNormArgs norm, const OperandRow& operand, int thread) {
  norm.y =
      dtype_ == DType::kF32 ? static_cast<float*>(operand.values) : StateOf(thread).row_scratch;
  return norm;
}

// states = input, and the operand of `next`.
void LayerRunner::ReadInput(const Block& block, const Next& next) {
  const bool projects = layers_.config.projects_embeddings();
  if (projects) ProjectInput(block);
  ForEachRow(block, [&](int64_t row, int thread) {
    float* states = activations_->states.row(block.begin + row);
    if (!projects) (*input_)(block.begin + row, states, StateOf(thread).row_scratch);
    WriteNext(states, next, NextOperand(block, row, next), thread);
  });
}

// states = input W + b
void LayerRunner::ProjectInput(const Block& block) {
  const int64_t width = layers_.config.embedding_width;
  float* const input = ScratchOf(block).wide_matmul_out.data();
  ForEachRow(block, [&](int64_t row, int thread) {
    (*input_)(block.begin + row, input + row * width, StateOf(thread).row_scratch);
  });
  Multiply(block, kEmbeddingProjection, layers_.embedding_projection,
           {.values = reinterpret_cast<std::byte*>(input)}, activations_->states.row(block.begin));
}

// The operand of `next`, if anything reads the states.
void LayerRunner::WriteNext(float* states, const Next& next, const OperandRow& operand,
                            int thread) {
  if (next.linear == nullptr) return;
  if (next.norm == nullptr) return kernels_.convert(states, layers_.config.hidden, operand);
  const LayerNormArgs norm = layers_.norm_args(*next.norm);
  kernels_.layer_norm(states, BesideStates(norm, operand, thread), operand);
}

// What the next matmul reads of the block's states, behind `norm`: in f32, where there is none,
// themselves.
LayerRunner::Operand LayerRunner::StatesOperand(const Block& block, const PackedNorm* norm) {
  const Operand& converted = ScratchOf(block).states;
  if (dtype_ != DType::kF32 || norm != nullptr) return converted;
  return {.values = reinterpret_cast<std::byte*>(activations_->states.row(block.begin)),
          .row_bytes = converted.row_bytes};
}

// The block's attention outputs likewise; attention writes them in f32 for int8, since a row's
// range is known only when all heads are done.
LayerRunner::Operand LayerRunner::ContextOperand(const Block& block) {
  const int64_t width = layers_.config.context_width();
  if (dtype_ != DType::kInt8) {
    auto* context = reinterpret_cast<std::byte*>(activations_->context.data());
    const int64_t row_bytes = width * OperandBytes(dtype_);
    return {.values = context + block.begin * row_bytes, .row_bytes = row_bytes};
  }
  const Operand& converted = ScratchOf(block).context;
  ForEachRow(block, [&](int64_t row, int) {
    kernels_.convert(activations_->context.row(block.begin + row), width, converted.row(row));
  });
  return converted;
}

// states += context W_o + b_o
void LayerRunner::AddAttention(const Block& block, const PackedLayer& weights) {
  AddBranch(block, kAttentionOutput, weights, ContextOperand(block),
            {&weights.linears[kFfnUp], pre_norm() ? &weights.ffn_norm : nullptr});
}

// intermediate = activation(states W_up + b_up), or gated;  states += intermediate W_down + b_down
void LayerRunner::FeedForward(const Block& block, const PackedLayer& weights, const Next& next) {
  const EncoderConfig& config = layers_.config;
  const PackedLinear& up = weights.linears[kFfnUp];
  const Operand states = StatesOperand(block, pre_norm() ? &weights.ffn_norm : nullptr);
  const Scratch& scratch = ScratchOf(block);
  if (layers_.matmuls[kFfnUp]->options().activates()) {
    Activate(block, up, states);
    return AddBranch(block, kFfnDown, weights, scratch.intermediate, next);
  }
  Multiply(block, kFfnUp, up, states, scratch.wide_matmul_out.data());
  const TensorView<float, 2> matmul_out(scratch.wide_matmul_out.data(),
                                        {block.rows, config.ffn_inputs()});
  const RowKernels::Activate activate = ActivationKernel(
      config.gated_ffn ? kernels_.activate_gated : kernels_.activate, config.activation);
  ForEachRow(block, [&](int64_t row, int thread) {
    activate(RowOf(matmul_out, row, states.row(row), up), up.bias.data(), config.ffn,
             StateOf(thread).row_scratch, scratch.intermediate.row(row));
  });
  AddBranch(block, kFfnDown, weights, scratch.intermediate, next);
}

// The intermediate from a matmul that activates: in int8 it leaves real numbers, since a row's
// range is known only when all its columns are done.
void LayerRunner::Activate(const Block& block, const PackedLinear& up, const Operand& states) {
  const Scratch& scratch = ScratchOf(block);
  if (dtype_ != DType::kInt8) {
    return Multiply(block, kFfnUp, up, states, scratch.intermediate.values);
  }
  const int64_t columns = layers_.config.ffn;
  float* activated = scratch.wide_matmul_out.data();
  Multiply(block, kFfnUp, up, states, activated);
  ForEachRow(block, [&](int64_t row, int) {
    kernels_.convert(activated + row * columns, columns, scratch.intermediate.row(row));
  });
}

// states += operand W + b, normalized as the configuration has it, and the operand of `next`.
void LayerRunner::AddBranch(const Block& block, LayerLinear which, const PackedLayer& weights,
                            const Operand& operand, const Next& next) {
  const Scratch& scratch = ScratchOf(block);
  const PackedLinear& linear = weights.linears[which];
  const bool adds = layers_.matmuls[which]->options().output == MatmulOutput::kAdded;
  Multiply(block, which, linear, operand,
           adds ? activations_->states.row(block.begin) : scratch.matmul_out.data());
  const PackedNorm* norm = which == kFfnDown ? &weights.ffn_norm : &weights.attention_norm;
  if (pre_norm()) norm = next.norm;
  LayerNormArgs args{.hidden = layers_.config.hidden};
  if (norm != nullptr) args = layers_.norm_args(*norm);
  ForEachRow(block, [&](int64_t row, int thread) {
    float* states = activations_->states.row(block.begin + row);
    const OperandRow x = operand.row(row), result = NextOperand(block, row, next);
    const MatmulRow matmul = RowOf(scratch.matmul_out, row, x, linear);
    if (layers_.config.norms_outputs()) {
      AddNormed(states, matmul, x, linear, weights.output_norm(which), thread);
      return WriteNext(states, next, result, thread);
    }
    AddOutliers(linear, x, states);
    const LayerNormArgs placed = pre_norm() ? BesideStates(args, result, thread) : args;
    if (!adds) return kernels_.add_layer_norm(states, matmul, linear.bias.data(), placed, result);
    if (norm != nullptr) kernels_.layer_norm(states, placed, result);
  });
}

// states += norm(x W + b), of a row.
void LayerRunner::AddNormed(float* states, const MatmulRow& matmul, const OperandRow& x,
                            const PackedLinear& linear, const PackedNorm& norm, int thread) {
  const int64_t hidden = layers_.config.hidden;
  float* branch = StateOf(thread).row_scratch;
  std::fill_n(branch, hidden, 0.0f);
  AddOutliers(linear, x, branch);
  kernels_.add_layer_norm(branch, matmul, linear.bias.data(), layers_.norm_args(norm), {});
  for (int64_t i = 0; i < hidden; ++i) states[i] += branch[i];
}

void LayerRunner::ProjectQkv(const Block& block, const Next& next, int64_t layer) {
  const PackedLinear& linear = *next.linear;
  const Operand states = StatesOperand(block, next.norm);
  if (layers_.matmuls[kQkv]->options().bias) {
    Multiply(block, kQkv, linear, states, activations_->qkv.row(block.begin));
    return PlaceQueriesAndKeys(block, layer);
  }
  const int64_t columns = layers_.config.qkv_width();
  float* wide_matmul_out = ScratchOf(block).wide_matmul_out.data();
  Multiply(block, kQkv, linear, states, wide_matmul_out);
  const TensorView<float, 2> matmul_out(wide_matmul_out, {block.rows, columns});
  ForEachRow(block, [&](int64_t row, int) {
    kernels_.add_bias(RowOf(matmul_out, row, states.row(row), linear), linear.bias.data(), columns,
                      activations_->qkv.row(block.begin + row));
  });
  PlaceQueriesAndKeys(block, layer);
}

// Normalizes queries and keys, which lie side by side, and turns them where positions are rotary.
void LayerRunner::PlaceQueriesAndKeys(const Block& block, int64_t layer) {
  const EncoderConfig& config = layers_.config;
  const bool rotary = config.positions == Positions::kRotary;
  if (!rotary && !config.query_key_norm) return;
  const PackedLayer& weights = layers_.layers[static_cast<size_t>(layer)];
  const RotaryTable& table = layers_.rotary_of(layer);
  const int64_t head_dim = config.head_dim();
  ForEachRow(block, [&](int64_t row, int) {
    std::byte* q = activations_->qkv.row(block.begin + row);
    if (config.query_key_norm) {
      std::byte* k = q + config.context_width() * layers_.qkv_value_bytes();
      const float epsilon = config.layer_norm_epsilon;
      kernels_.normalize_heads(q, config.heads, head_dim, weights.query_norm.gamma.data(), epsilon);
      kernels_.normalize_heads(k, config.key_heads(), head_dim, weights.key_norm.gamma.data(),
                               epsilon);
    }
    if (!rotary) return;
    const int64_t position = positions_[static_cast<size_t>(block.begin + row)];
    kernels_.rotate(q, config.heads + config.key_heads(), head_dim, table.cosines(position),
                    table.sines(position));
  });
}

}  // namespace attendant::cpu
