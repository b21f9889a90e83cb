// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_session.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "kernels/core/pooling.h"
#include "kernels/cpu/denormals.h"

namespace attendant::cpu {
namespace {

// What a session's arena must hold; measured by asking an empty arena for the same things.
size_t MeasureArena(const std::function<void(Arena&)>& allocate) {
  Arena measure(0);
  allocate(measure);
  return measure.used_bytes();
}

size_t MaxScratchpad(const LayerMatmuls& matmuls) {
  return std::max({matmuls.qkv.scratchpad_bytes(), matmuls.attention_output.scratchpad_bytes(),
                   matmuls.ffn_up.scratchpad_bytes(), matmuls.ffn_down.scratchpad_bytes()});
}

int64_t OperandBytes(DType dtype) {
  return dtype == DType::kF32 ? 4 : dtype == DType::kBf16 ? 2 : 1;
}

ProductRow RowOf(TensorView<float, 2> product, int64_t row, const OperandRow& operand,
                 const PackedLinear& linear) {
  return {product.row(row), operand.quantization, linear.column_sums.data(),
          linear.column_scales.data()};
}

void StartComputeThread() {
  UseOneThreadPerCall();
  FlushDenormals();
}

}  // namespace

CpuSession::CpuSession(const CpuEncoder& encoder, const SessionLimits& limits,
                       const ThreadTeam& team)
    : encoder_(encoder),
      kernels_(encoder.row_kernels()),
      dtype_(encoder.info().dtype),
      qkv_bytes_(kernels_.qkv_is_bf16 ? 2 : 4),
      limits_(limits),
      pool_(team, StartComputeThread),
      arena_(MeasureArena([&](Arena& arena) {
        AllocateShared(arena);
        for (int i = 0; i < team.threads; ++i) MakeThread(arena);
      })) {
  UseOneThreadPerCall();
  AllocateShared(arena_);
  for (int i = 0; i < team.threads; ++i) threads_.push_back(MakeThread(arena_));
  tasks_.reserve(
      static_cast<size_t>(MaxAttentionTasks(limits.max_batch_tokens, encoder.config().heads)));
}

void CpuSession::AllocateShared(Arena& arena) {
  const EncoderConfig& config = encoder_.config();
  const int64_t rows = RoundUpRows(limits_.max_batch_tokens);
  states_ = arena.Allocate2<float>(rows, config.hidden);
  qkv_ = arena.Allocate2<std::byte>(rows, 3 * config.hidden * qkv_bytes_);
  context_ = arena.Allocate2<float>(rows, config.hidden);
  pooled_ = arena.Allocate2<float>(limits_.max_batch_sequences, config.hidden);
}

CpuSession::Operand CpuSession::AllocateOperand(Arena& arena, int64_t columns) const {
  const int64_t row_bytes = columns * OperandBytes(dtype_);
  return {.values = arena.Allocate<std::byte>(kMaxBlockRows * row_bytes),
          .row_bytes = row_bytes,
          .quantization =
              dtype_ == DType::kInt8 ? arena.Allocate<RowQuantization>(kMaxBlockRows) : nullptr};
}

CpuSession::ThreadState CpuSession::MakeThread(Arena& arena) const {
  const EncoderConfig& config = encoder_.config();
  const LayerMatmuls& matmuls = encoder_.matmuls();
  dnnl::stream stream(encoder_.engine());
  void* scratchpad = arena.Allocate<std::byte>(static_cast<int64_t>(MaxScratchpad(matmuls)));
  const int64_t max_len = std::min(limits_.max_batch_tokens, config.max_positions);
  return ThreadState{
      .stream = stream,
      .qkv = MatmulRunner(matmuls.qkv, stream, scratchpad),
      .attention_output = MatmulRunner(matmuls.attention_output, stream, scratchpad),
      .ffn_up = MatmulRunner(matmuls.ffn_up, stream, scratchpad),
      .ffn_down = MatmulRunner(matmuls.ffn_down, stream, scratchpad),
      .product = arena.Allocate2<float>(kMaxBlockRows, config.hidden),
      .wide_product =
          arena.Allocate2<float>(kMaxBlockRows, std::max(config.ffn, 3 * config.hidden)),
      .states = AllocateOperand(arena, config.hidden),
      .intermediate = AllocateOperand(arena, config.ffn),
      .row_scratch = arena.Allocate<float>(config.ffn),
      .attention_scratch = arena.Allocate<std::byte>(encoder_.kernels().attention_scratch_bytes(
          max_len, config.head_dim(), config.head_dim())),
      .weights_scratch = arena.Allocate<float>(
          encoder_.kernels().attention_weights_scratch(max_len, config.head_dim())),
  };
}

absl::Status CpuSession::Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) {
  if (absl::Status status = CheckSessionLimits(batch, spec, limits_); !status.ok()) return status;
  const EncoderConfig& config = encoder_.config();
  if (batch.max_len() > config.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("a sequence has ", batch.max_len(),
                                                   " tokens, the limit is ", config.max_positions));
  }
  const ScopedDenormalFlush flush;
  UseOneThreadPerCall();
  for (ThreadState& thread : threads_) thread.failed = false;

  PlanAttention(batch, config.heads, tasks_);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    RunRows(batch, layer);
    WriteHiddenStates(batch, spec, layer);
    RunAttention(spec, layer);
  }
  RunRows(batch, config.layers);
  WriteHiddenStates(batch, spec, config.layers);
  Pool(batch, spec);

  for (const ThreadState& thread : threads_) {
    if (thread.failed) return absl::InternalError("oneDNN could not execute a matmul");
  }
  outputs.last_hidden_state = {states_.data(), {batch.tokens(), config.hidden}};
  outputs.pooled = {pooled_.data(), {batch.batch(), config.hidden}};
  return absl::OkStatus();
}

// Finishes layer - 1 and begins `layer`: everything between one attention and the next.
void CpuSession::RunRows(const PackedBatch& batch, int64_t layer) {
  const int64_t block_rows = ChooseBlockRows(batch.tokens(), kMaxBlockRows, pool_.threads());
  const int64_t blocks = (batch.tokens() + block_rows - 1) / block_rows;
  pool_.ParallelFor(blocks, [&](int64_t index, int thread_index) {
    ThreadState& thread = threads_[static_cast<size_t>(thread_index)];
    const int64_t begin = index * block_rows;
    const int64_t rows = std::min(block_rows, batch.tokens() - begin);
    const Block block{.begin = begin, .rows = rows, .padded = RoundUpRows(rows)};
    if (layer == 0) {
      EmbedBlock(batch, block, thread);
    } else {
      FinishLayerBlock(block, layer - 1, thread);
    }
    if (layer < encoder_.config().layers) ProjectQkvBlock(block, layer, thread);
  });
}

// states = LayerNorm(token_embedding + segment_embedding + position_embedding)
void CpuSession::EmbedBlock(const PackedBatch& batch, const Block& block, ThreadState& thread) {
  const EncoderWeights& tables = encoder_.embeddings();
  const LayerNormArgs norm{tables.embedding_norm.gamma.data(), tables.embedding_norm.beta.data(),
                           encoder_.config().hidden, encoder_.config().layer_norm_epsilon};
  for (int64_t row = block.begin; row < block.begin + block.rows; ++row) {
    const auto i = static_cast<size_t>(row);
    encoder_.kernels().embed(
        encoder_.token_embedding().Row(batch.token_ids()[i], thread.product.row(0)),
        tables.segment_embedding.row(batch.segment_ids()[i]),
        tables.position_embedding.row(batch.positions()[i]), norm, states_.row(row));
    kernels_.convert(states_.row(row), norm.hidden, thread.states.row(row - block.begin));
  }
}

void CpuSession::FinishLayerBlock(const Block& block, int64_t layer, ThreadState& thread) {
  const PackedLayer& weights = encoder_.layers()[static_cast<size_t>(layer)];
  AddAttentionBlock(block, weights, thread);
  FeedForwardBlock(block, weights, thread);
}

// The block's states as the next product reads them: themselves in f32.
CpuSession::Operand CpuSession::StatesOperand(const Block& block, ThreadState& thread) {
  if (dtype_ != DType::kF32) return thread.states;
  return {.values = reinterpret_cast<std::byte*>(states_.row(block.begin)),
          .row_bytes = thread.states.row_bytes};
}

// The block's attention outputs likewise; attention writes them in f32 for int8, since a row's
// range is known only when all heads are done.
CpuSession::Operand CpuSession::ContextOperand(const Block& block, ThreadState& thread) {
  if (dtype_ != DType::kInt8) {
    auto* context = reinterpret_cast<std::byte*>(context_.data());
    return {.values = context + block.begin * thread.states.row_bytes,
            .row_bytes = thread.states.row_bytes};
  }
  for (int64_t row = 0; row < block.rows; ++row) {
    kernels_.convert(context_.row(block.begin + row), encoder_.config().hidden,
                     thread.states.row(row));
  }
  return thread.states;
}

// states = LayerNorm(states + context W_o + b_o)
void CpuSession::AddAttentionBlock(const Block& block, const PackedLayer& weights,
                                   ThreadState& thread) {
  const Operand context = ContextOperand(block, thread);
  const bool ok =
      thread.attention_output.Run(block.padded, context.values, weights.attention_output.weight,
                                  nullptr, thread.product.data());
  thread.failed |= !ok;
  NormalizeBlock(block, weights.attention_output, context,
                 {weights.attention_gamma.data(), weights.attention_beta.data(),
                  encoder_.config().hidden, encoder_.config().layer_norm_epsilon},
                 thread);
}

// intermediate = activation(states W_up + b_up);  states = LayerNorm(states + intermediate W_down +
// b_down)
void CpuSession::FeedForwardBlock(const Block& block, const PackedLayer& weights,
                                  ThreadState& thread) {
  const EncoderConfig& config = encoder_.config();
  const Operand states = StatesOperand(block, thread);
  bool ok = thread.ffn_up.Run(block.padded, states.values, weights.ffn_up.weight, nullptr,
                              thread.wide_product.data());
  const TensorView<float, 2> product(thread.wide_product.data(), {block.padded, config.ffn});
  const RowKernels::Activate activate =
      config.activation == Activation::kGeluErf    ? kernels_.gelu_erf
      : config.activation == Activation::kGeluTanh ? kernels_.gelu_tanh
                                                   : kernels_.relu;
  for (int64_t row = 0; row < block.rows; ++row) {
    activate(RowOf(product, row, states.row(row), weights.ffn_up), weights.ffn_up.bias.data(),
             config.ffn, thread.row_scratch, thread.intermediate.row(row));
  }
  ok &= thread.ffn_down.Run(block.padded, thread.intermediate.values, weights.ffn_down.weight,
                            nullptr, thread.product.data());
  thread.failed |= !ok;
  NormalizeBlock(
      block, weights.ffn_down, thread.intermediate,
      {weights.ffn_gamma.data(), weights.ffn_beta.data(), config.hidden, config.layer_norm_epsilon},
      thread);
}

// states = LayerNorm(states + product + bias), where the product is of `operand` and `linear`.
void CpuSession::NormalizeBlock(const Block& block, const PackedLinear& linear,
                                const Operand& operand, const LayerNormArgs& norm,
                                ThreadState& thread) {
  for (int64_t row = 0; row < block.rows; ++row) {
    kernels_.add_layer_norm(states_.row(block.begin + row),
                            RowOf(thread.product, row, operand.row(row), linear),
                            linear.bias.data(), norm, thread.states.row(row));
  }
}

void CpuSession::ProjectQkvBlock(const Block& block, int64_t layer, ThreadState& thread) {
  const PackedLinear& weights = encoder_.layers()[static_cast<size_t>(layer)].qkv;
  const Operand states = StatesOperand(block, thread);
  if (dtype_ != DType::kInt8) {
    thread.failed |= !thread.qkv.Run(block.padded, states.values, weights.weight,
                                     weights.bias.data(), qkv_.row(block.begin));
    return;
  }
  const int64_t columns = 3 * encoder_.config().hidden;
  thread.failed |= !thread.qkv.Run(block.padded, states.values, weights.weight, nullptr,
                                   thread.wide_product.data());
  const TensorView<float, 2> product(thread.wide_product.data(), {block.padded, columns});
  for (int64_t row = 0; row < block.rows; ++row) {
    kernels_.add_bias(RowOf(product, row, states.row(row), weights), weights.bias.data(), columns,
                      qkv_.row(block.begin + row));
  }
}

void CpuSession::RunAttention(const OutputSpec& spec, int64_t layer) {
  pool_.ParallelFor(static_cast<int64_t>(tasks_.size()), [&](int64_t index, int thread_index) {
    const AttentionTask& task = tasks_[static_cast<size_t>(index)];
    ThreadState& thread = threads_[static_cast<size_t>(thread_index)];
    AttendTask(task, thread);
    if (spec.layers.empty()) return;
    WriteWeights(task, spec.layers[static_cast<size_t>(task.sequence)], layer, thread);
  });
}

void CpuSession::AttendTask(const AttentionTask& task, ThreadState& thread) {
  const EncoderConfig& config = encoder_.config();
  const int64_t head_dim = config.head_dim();
  const int64_t context_bytes = dtype_ == DType::kBf16 ? 2 : 4;
  for (int64_t head = task.head_begin; head < task.head_end; ++head) {
    const std::byte* q = qkv_.row(task.seq_start) + head * head_dim * qkv_bytes_;
    kernels_.attention({
        .q = q,
        .k = q + config.hidden * qkv_bytes_,
        .v = q + 2 * config.hidden * qkv_bytes_,
        .out = reinterpret_cast<std::byte*>(context_.data()) +
               (task.seq_start * config.hidden + head * head_dim) * context_bytes,
        .out_is_bf16 = dtype_ == DType::kBf16,
        .q_stride = 3 * config.hidden,
        .k_stride = 3 * config.hidden,
        .v_stride = 3 * config.hidden,
        .out_stride = config.hidden,
        .keys = task.len,
        .head_dim = head_dim,
        .value_dim = head_dim,
        .query_begin = task.query_begin,
        .query_end = task.query_end,
        .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
        .scratch = thread.attention_scratch,
    });
  }
}

void CpuSession::Pool(const PackedBatch& batch, const OutputSpec& spec) {
  pool_.ParallelFor(batch.batch(), [&](int64_t index, int) {
    const SequenceOutputs& wanted = spec.sequences[static_cast<size_t>(index)];
    if (wanted.pooling == Pooling::kNone) return;
    PoolSequence(
        {states_.row(batch.seq_start(index)), {batch.len(index), encoder_.config().hidden}}, wanted,
        pooled_.row(index));
  });
}

}  // namespace attendant::cpu
