// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/block_linears.h"

#include <utility>

#include "kernels/cpu/simd/activation_kernel.h"
#include "kernels/cpu/simd/by_dtype.h"

namespace attendant::cpu {
namespace {

// A share with fewer rows is left whole: reading the weights takes too much of its quarters' time.
// Tokens a second with the last shares cut, MiniLM on two threads of a Zen 3 that other virtual
// machines use too, medians of 22 to 40 ratios in turns: f32 at 128 tokens 1.05 to 1.08, at mixed
// lengths 1.05; int8 at mixed lengths 1.06. A batch of 400 tokens 1.03; of 264, in quarters of 16
// rows, 1.01. Blocks of 64 rows in place of 128 give 1.01 to 1.02, sections of twice the tokens the
// same. Not measured on processors that nothing else uses, where less is to gain.
constexpr int64_t kMinCutRows = 96;

int64_t OperandBytes(DType dtype) { return ByDType<int64_t>(dtype, 4, 2, 1); }

}  // namespace

RowBlocks::RowBlocks(int64_t tokens, int64_t max_rows, int threads)
    : tokens_(tokens),
      shares_(std::min(CeilDivide(tokens, max_rows * threads) * threads,
                       CeilDivide(tokens, kRowGranularity))),
      cut_(threads > 1 && shares_ >= 2 * threads && tokens >= shares_ * kMinCutRows ? threads : 0) {
}

int64_t RowBlocks::begin(int64_t index) const {
  const int64_t whole = shares_ - cut_, behind = index - whole;
  int64_t quarters = 4 * std::min(index, whole);
  if (behind > 0) quarters += behind < cut_ ? 2 * behind : cut_ + behind;
  return std::min(tokens_, RoundUpRows(quarters * tokens_ / (4 * shares_)));
}

MatmulRow RowOf(TensorView<float, 2> matmul_out, int64_t row, const OperandRow& operand,
                const PackedLinear& linear) {
  return {matmul_out.row(row), operand.quantization, linear.column_scales.data(),
          linear.column_offsets.data()};
}

const float* SmoothingOf(const PackedLinear& linear) {
  return linear.smoothing_factors.empty() ? nullptr : linear.smoothing_factors.data();
}

void AddOutliers(const PackedLinear& linear, const OperandRow& x, float* y) {
  for (const OutlierWeight& outlier : linear.outliers) {
    const int32_t value = static_cast<const uint8_t*>(x.values)[outlier.input];
    const auto centered = static_cast<float>(value - x.quantization->zero_point);
    y[outlier.output] += outlier.value * (centered * x.quantization->scale);
  }
}

BlockLinears::BlockLinears(const PackedLayers& layers, int threads, FewRows few_rows, Arena& arena)
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

Operand BlockLinears::AllocateOperand(Arena& arena, int64_t columns) const {
  const int64_t row_bytes = columns * OperandBytes(dtype_);
  return {.values = arena.Allocate<std::byte>(kMaxBlockRows * row_bytes + kSpareBytes),
          .row_bytes = row_bytes,
          .quantization =
              dtype_ == DType::kInt8 ? arena.Allocate<RowQuantization>(kMaxBlockRows) : nullptr};
}

BlockLinears::ThreadState BlockLinears::MakeThread(Arena& arena) const {
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

void BlockLinears::Multiply(const Block& block, LayerLinear linear, const PackedLinear& weights,
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

const Operand& BlockLinears::Intermediate(const Block& block, const PackedLinear& up,
                                          const Operand& x) {
  const EncoderConfig& config = layers_.config;
  const Scratch& scratch = ScratchOf(block);
  if (layers_.matmuls[kFfnUp]->options().activates()) {
    Activate(block, up, x);
    return scratch.intermediate;
  }
  Multiply(block, kFfnUp, up, x, scratch.wide_matmul_out.data());
  const TensorView<float, 2> matmul_out(scratch.wide_matmul_out.data(),
                                        {block.rows, config.ffn_inputs()});
  const RowKernels::Activate activate = ActivationKernel(
      config.gated_ffn ? kernels_.activate_gated : kernels_.activate, config.activation);
  ForEachRow(block, [&](int64_t row, int thread) {
    activate(RowOf(matmul_out, row, x.row(row), up), up.bias.data(), config.ffn,
             StateOf(thread).row_scratch, scratch.intermediate.row(row));
  });
  return scratch.intermediate;
}

// The intermediate from a matmul that activates: in int8 it leaves real numbers, since a row's
// range is known only when all its columns are done.
void BlockLinears::Activate(const Block& block, const PackedLinear& up, const Operand& x) {
  const Scratch& scratch = ScratchOf(block);
  if (dtype_ != DType::kInt8) {
    return Multiply(block, kFfnUp, up, x, scratch.intermediate.values);
  }
  const int64_t columns = layers_.config.ffn;
  float* activated = scratch.wide_matmul_out.data();
  Multiply(block, kFfnUp, up, x, activated);
  ForEachRow(block, [&](int64_t row, int) {
    kernels_.convert(activated + row * columns, columns, scratch.intermediate.row(row));
  });
}

void BlockLinears::ForgetFailures() {
  for (ThreadState& thread : threads_) thread.failed = false;
}

bool BlockLinears::failed() const {
  return std::any_of(threads_.begin(), threads_.end(),
                     [](const ThreadState& thread) { return thread.failed; });
}

}  // namespace attendant::cpu
