// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
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

void StartComputeThread() {
  UseOneThreadPerCall();
  FlushDenormals();
}

}  // namespace

CpuSession::CpuSession(const CpuEncoder& encoder, const SessionLimits& limits, int threads)
    : encoder_(encoder),
      limits_(limits),
      pool_(threads, StartComputeThread),
      arena_(MeasureArena([&](Arena& arena) {
        AllocateShared(arena);
        for (int i = 0; i < threads; ++i) MakeThread(arena);
      })) {
  UseOneThreadPerCall();
  AllocateShared(arena_);
  // The rows that pad the last block take part in products; they must never have held a NaN.
  std::memset(states_.data(), 0, static_cast<size_t>(states_.size()) * sizeof(float));
  std::memset(context_.data(), 0, static_cast<size_t>(context_.size()) * sizeof(float));
  for (int i = 0; i < threads; ++i) threads_.push_back(MakeThread(arena_));
  tasks_.reserve(
      static_cast<size_t>(MaxAttentionTasks(limits.max_batch_tokens, encoder.config().heads)));
}

void CpuSession::AllocateShared(Arena& arena) {
  const EncoderConfig& config = encoder_.config();
  const int64_t rows = RoundUpRows(limits_.max_batch_tokens);
  states_ = arena.Allocate2<float>(rows, config.hidden);
  qkv_ = arena.Allocate2<float>(rows, 3 * config.hidden);
  context_ = arena.Allocate2<float>(rows, config.hidden);
  pooled_ = arena.Allocate2<float>(limits_.max_batch_sequences, config.hidden);
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
      .intermediate = arena.Allocate2<float>(kMaxBlockRows, config.ffn),
      .attention_scratch =
          arena.Allocate<float>(encoder_.kernels().attention_scratch(max_len, config.head_dim())),
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
    RunAttention();
  }
  RunRows(batch, config.layers);
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
      EmbedBlock(batch, block);
    } else {
      FinishLayerBlock(block, layer - 1, thread);
    }
    if (layer < encoder_.config().layers) ProjectQkvBlock(block, layer, thread);
  });
}

// states = LayerNorm(token_embedding + segment_embedding + position_embedding)
void CpuSession::EmbedBlock(const PackedBatch& batch, const Block& block) {
  const EncoderWeights& tables = encoder_.embeddings();
  const LayerNormArgs norm{tables.embedding_norm.gamma.data(), tables.embedding_norm.beta.data(),
                           encoder_.config().hidden, encoder_.config().layer_norm_epsilon};
  for (int64_t row = block.begin; row < block.begin + block.rows; ++row) {
    const auto i = static_cast<size_t>(row);
    encoder_.kernels().add_layer_norm(tables.token_embedding.row(batch.token_ids()[i]),
                                      tables.segment_embedding.row(batch.segment_ids()[i]),
                                      tables.position_embedding.row(batch.positions()[i]), norm,
                                      states_.row(row));
  }
}

void CpuSession::FinishLayerBlock(const Block& block, int64_t layer, ThreadState& thread) {
  const EncoderConfig& config = encoder_.config();
  const VectorKernels& kernels = encoder_.kernels();
  const PackedLayer& weights = encoder_.layers()[static_cast<size_t>(layer)];
  float* states = states_.row(block.begin);

  // states = LayerNorm(states + context W_o + b_o)
  bool ok = thread.attention_output.Run(block.padded, context_.row(block.begin),
                                        weights.attention_output, nullptr, thread.product.data());
  const LayerNormArgs attention_norm{weights.attention_gamma.data(), weights.attention_beta.data(),
                                     config.hidden, config.layer_norm_epsilon};
  for (int64_t row = 0; row < block.rows; ++row) {
    kernels.add_layer_norm(states + row * config.hidden, thread.product.row(row),
                           weights.attention_output_bias.data(), attention_norm,
                           states + row * config.hidden);
  }

  // intermediate = activation(states W_up + b_up)
  ok &=
      thread.ffn_up.Run(block.padded, states, weights.ffn_up, nullptr, thread.intermediate.data());
  const auto bias_activation = config.activation == Activation::kGeluErf    ? kernels.bias_gelu_erf
                               : config.activation == Activation::kGeluTanh ? kernels.bias_gelu_tanh
                                                                            : kernels.bias_relu;
  for (int64_t row = 0; row < block.rows; ++row) {
    bias_activation(thread.intermediate.row(row), weights.ffn_up_bias.data(), config.ffn);
  }

  // states = LayerNorm(states + intermediate W_down + b_down)
  ok &= thread.ffn_down.Run(block.padded, thread.intermediate.data(), weights.ffn_down, nullptr,
                            thread.product.data());
  const LayerNormArgs ffn_norm{weights.ffn_gamma.data(), weights.ffn_beta.data(), config.hidden,
                               config.layer_norm_epsilon};
  for (int64_t row = 0; row < block.rows; ++row) {
    kernels.add_layer_norm(states + row * config.hidden, thread.product.row(row),
                           weights.ffn_down_bias.data(), ffn_norm, states + row * config.hidden);
  }
  thread.failed |= !ok;
}

void CpuSession::ProjectQkvBlock(const Block& block, int64_t layer, ThreadState& thread) {
  const PackedLayer& weights = encoder_.layers()[static_cast<size_t>(layer)];
  const bool ok = thread.qkv.Run(block.padded, states_.row(block.begin), weights.qkv,
                                 weights.qkv_bias.data(), qkv_.row(block.begin));
  thread.failed |= !ok;
}

void CpuSession::RunAttention() {
  pool_.ParallelFor(static_cast<int64_t>(tasks_.size()), [&](int64_t index, int thread_index) {
    AttendTask(tasks_[static_cast<size_t>(index)], threads_[static_cast<size_t>(thread_index)]);
  });
}

void CpuSession::AttendTask(const AttentionTask& task, ThreadState& thread) {
  const EncoderConfig& config = encoder_.config();
  const int64_t head_dim = config.head_dim();
  for (int64_t head = task.head_begin; head < task.head_end; ++head) {
    const float* q = qkv_.row(task.seq_start) + head * head_dim;
    encoder_.kernels().attention({
        .q = q,
        .k = q + config.hidden,
        .v = q + 2 * config.hidden,
        .out = context_.row(task.seq_start) + head * head_dim,
        .stride = 3 * config.hidden,
        .out_stride = config.hidden,
        .len = task.len,
        .head_dim = head_dim,
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
