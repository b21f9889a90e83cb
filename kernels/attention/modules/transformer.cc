// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/modules/transformer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/attention/check_call.h"
#include "kernels/attention/exact/exact_attention.h"
#include "kernels/attention/modules/token_rows.h"
#include "kernels/attention/reference/reference_module.h"
#include "kernels/attention/values.h"
#include "kernels/core/arena.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/denormals.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::attention {

// The layout of a call's scratch. Rows are rounded up, for matmuls write whole blocks.
struct TransformerEncoder::Buffers {
  struct Thread {
    std::byte* operand;       // [kBlockRows, hidden], what the next matmul reads
    std::byte* intermediate;  // [kBlockRows, ffn], the same
    float* matmul_out;        // [kBlockRows, max(hidden, ffn)]
    std::byte* scratchpad;
  };

  Buffers(const Call& call, const TransformerEncoder& encoder, int num_threads, Arena& scratch) {
    const ModuleConfig& config = encoder.config();
    const int64_t value_bytes = ValueBytes(call.dtype);
    const int64_t values = cpu::RoundUpRows(call.queries.tokens()) * config.hidden;
    states = scratch.Allocate<float>(values);
    q = scratch.Allocate<std::byte>(values * value_bytes);
    k = scratch.Allocate<std::byte>(values * value_bytes);
    v = scratch.Allocate<std::byte>(values * value_bytes);
    context = scratch.Allocate<std::byte>(values * value_bytes);
    for (int i = 0; i < num_threads; ++i) {
      threads.push_back(
          {.operand = scratch.Allocate<std::byte>(kBlockRows * config.hidden * value_bytes),
           .intermediate = scratch.Allocate<std::byte>(kBlockRows * config.ffn * value_bytes),
           .matmul_out = scratch.Allocate<float>(kBlockRows * std::max(config.hidden, config.ffn)),
           .scratchpad = scratch.Allocate<std::byte>(encoder.cache_.scratchpad_bytes())});
    }
  }

  float* states;                   // [tokens, hidden]
  std::byte *q, *k, *v, *context;  // [tokens, hidden], of the call's dtype
  std::vector<Thread> threads;
};

// One thread's work on blocks of rows.
class TransformerEncoder::BlockRunner {
 public:
  BlockRunner(const TransformerEncoder& encoder, const Call& call, const Buffers& buffers,
              const Buffers::Thread& thread)
      : encoder_(encoder),
        call_(call),
        buffers_(buffers),
        thread_(thread),
        executor_(thread.scratchpad) {}

  bool failed() const { return executor_.failed(); }

  void Begin(int64_t block) {
    begin_ = block * kBlockRows;
    count_ = std::min(kBlockRows, call_.queries.tokens() - begin_);
    padded_ = cpu::RoundUpRows(count_);
  }

  void ReadStates() {
    for (int64_t i = 0; i < count_; ++i) {
      const std::byte* row = TokenRow(call_.query, call_.queries, call_.dtype, begin_ + i);
      for (int64_t j = 0; j < hidden(); ++j) States(i)[j] = ReadValue(row, call_.dtype, j);
    }
    // What pads a matmul's rows must be numbers: arithmetic on others may be slow.
    std::fill(States(count_), States(padded_), 0.0f);
  }

  void ProjectQkv(const Layer& layer) {
    const std::byte* x = Operand(encoder_.config().norm_first ? &layer.attention_norm : nullptr);
    executor_.Run(layer.attention.query, padded_, x, At(buffers_.q));
    executor_.Run(layer.attention.key, padded_, x, At(buffers_.k));
    executor_.Run(layer.attention.value, padded_, x, At(buffers_.v));
  }

  void FinishLayer(const Layer& layer) {
    const bool norm_first = encoder_.config().norm_first;
    executor_.Run(layer.attention.output, padded_, At(buffers_.context), thread_.matmul_out);
    AddBranch(layer.attention.output, layer.attention_norm);
    const std::byte* x = Operand(norm_first ? &layer.ffn_norm : nullptr);
    executor_.Run(layer.ffn_up, padded_, x, thread_.matmul_out);
    ActivateRows(layer.ffn_up);
    executor_.Run(layer.ffn_down, padded_, thread_.intermediate, thread_.matmul_out);
    AddBranch(layer.ffn_down, layer.ffn_norm);
  }

  void WriteStates(const OutputRows& out) {
    const bool final_norm = encoder_.config().final_norm;
    for (int64_t i = 0; i < count_; ++i) {
      if (final_norm) {
        AddNormalized(States(i), encoder_.zeros_.data(), encoder_.zeros_.data(),
                      encoder_.final_norm_, i);
      }
      std::byte* row = TokenRow(out, call_.queries, call_.dtype, begin_ + i);
      for (int64_t j = 0; j < hidden(); ++j) WriteValue(row, call_.dtype, j, States(i)[j]);
    }
  }

 private:
  int64_t hidden() const { return encoder_.config().hidden; }
  int64_t value_bytes() const { return ValueBytes(call_.dtype); }
  float* States(int64_t row) const { return buffers_.states + (begin_ + row) * hidden(); }
  std::byte* At(std::byte* rows) const { return rows + begin_ * hidden() * value_bytes(); }
  std::byte* OperandRow(int64_t row) const {
    return thread_.operand + row * hidden() * value_bytes();
  }

  // The states, normalized if there is a norm, as the next matmul reads them.
  const std::byte* Operand(const Norm* norm) {
    const bool is_f32 = call_.dtype == DType::kF32;
    if (norm == nullptr && is_f32) return reinterpret_cast<const std::byte*>(States(0));
    for (int64_t i = 0; i < padded_; ++i) {
      if (norm == nullptr) {
        encoder_.rows_.convert(States(i), hidden(), {.values = OperandRow(i)});
      } else {
        float* normal = is_f32 ? reinterpret_cast<float*>(OperandRow(i)) : thread_.matmul_out;
        std::copy_n(States(i), hidden(), normal);
        AddNormalized(normal, encoder_.zeros_.data(), encoder_.zeros_.data(), *norm, i);
      }
    }
    return thread_.operand;
  }

  // states [hidden] = LayerNorm(states + matmul + bias); in bf16 row `row` of the operand, too.
  void AddNormalized(float* states, const float* matmul_out, const float* bias, const Norm& norm,
                     int64_t row) {
    const cpu::LayerNormArgs args{.gamma = norm.gamma.data(),
                                  .beta = norm.beta.data(),
                                  .hidden = hidden(),
                                  .epsilon = encoder_.config().layer_norm_epsilon};
    encoder_.rows_.add_layer_norm(states, {.values = matmul_out}, bias, args,
                                  {.values = OperandRow(row)});
  }

  // states += matmul + bias; post-norm normalizes the sum.
  void AddBranch(const ModuleLinear& linear, const Norm& norm) {
    const float* bias = linear.bias();
    for (int64_t i = 0; i < padded_; ++i) {
      float* states = States(i);
      const float* matmul_out = thread_.matmul_out + i * hidden();
      if (encoder_.config().norm_first) {
        for (int64_t j = 0; j < hidden(); ++j) states[j] += matmul_out[j] + bias[j];
      } else {
        AddNormalized(states, matmul_out, bias, norm, i);
      }
    }
  }

  // intermediate = activation(matmul + bias)
  void ActivateRows(const ModuleLinear& linear) {
    const cpu::RowKernels& rows = encoder_.rows_;
    const auto activate = encoder_.config().activation == Activation::kRelu      ? rows.relu
                          : encoder_.config().activation == Activation::kGeluErf ? rows.gelu_erf
                                                                                 : rows.gelu_tanh;
    const int64_t ffn = encoder_.config().ffn;
    for (int64_t i = 0; i < padded_; ++i) {
      activate({.values = thread_.matmul_out + i * ffn}, linear.bias(), ffn, nullptr,
               {.values = thread_.intermediate + i * ffn * value_bytes()});
    }
  }

  const TransformerEncoder& encoder_;
  const Call& call_;
  const Buffers& buffers_;
  const Buffers::Thread& thread_;
  ModuleLinearExecutor executor_;
  int64_t begin_ = 0;   // first row of the block
  int64_t count_ = 0;   // its rows
  int64_t padded_ = 0;  // and those of its matmuls
};

TransformerEncoder::TransformerEncoder(const ModuleConfig& config, ModuleWeights weights,
                                       MatmulCache cache, const cpu::IsaLevel& isa)
    : Module(config, cache.dtype(), isa),
      weights_(std::move(weights)),
      cache_(std::move(cache)),
      rows_(cache_.dtype() == DType::kBf16 ? isa.kernels.bf16 : isa.kernels.f32),
      zeros_(static_cast<size_t>(config.hidden)) {
  if (config.final_norm) final_norm_ = MakeNorm(weights_.final_norm);
}

TransformerEncoder::Norm TransformerEncoder::MakeNorm(const LayerNormWeights& weights) {
  const float* gamma = weights.gamma.data();
  Norm norm{.gamma = std::vector<float>(gamma, gamma + weights.gamma.size()), .beta = {}};
  norm.beta.resize(norm.gamma.size());
  if (!weights.beta.empty())
    std::copy_n(weights.beta.data(), weights.beta.size(), norm.beta.begin());
  return norm;
}

absl::Status TransformerEncoder::PackLayer(const TransformerLayerWeights& weights) {
  const ModuleLinear::Options plain{.add_bias = false, .dtype_outputs = false};
  ATTENDANT_ASSIGN_OR_RETURN(MultiHeadProjections attention,
                             MultiHeadProjections::Create(cache_, weights.attention, plain));
  ATTENDANT_ASSIGN_OR_RETURN(ModuleLinear up, ModuleLinear::Create(cache_, weights.ffn_up, plain));
  ATTENDANT_ASSIGN_OR_RETURN(ModuleLinear down,
                             ModuleLinear::Create(cache_, weights.ffn_down, plain));
  layers_.push_back({std::move(attention), std::move(up), std::move(down),
                     MakeNorm(weights.attention_norm), MakeNorm(weights.ffn_norm)});
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<const Module>> TransformerEncoder::Create(const ModuleConfig& config,
                                                                         ModuleWeights weights,
                                                                         DType dtype,
                                                                         const cpu::IsaLevel& isa) {
  std::unique_ptr<TransformerEncoder> encoder(
      new TransformerEncoder(config, std::move(weights), MatmulCache(dtype, isa.kernels), isa));
  for (const TransformerLayerWeights& layer : encoder->weights_.layers) {
    ATTENDANT_RETURN_IF_ERROR(encoder->PackLayer(layer));
  }
  return encoder;
}

int64_t TransformerEncoder::weight_bytes() const {
  int64_t bytes = 0;
  for (const Layer& layer : layers_) {
    bytes += layer.attention.bytes() + layer.ffn_up.bytes() + layer.ffn_down.bytes();
  }
  return bytes;
}

absl::StatusOr<Cost> TransformerEncoder::Measure(const Call& call, int threads) const {
  ATTENDANT_RETURN_IF_ERROR(CheckModuleCall(*this, call));
  if (!SameLengths(call.queries, call.keys) || call.queries.packed() != call.keys.packed()) {
    return absl::InvalidArgumentError(
        "a transformer's keys must be its queries: their lengths differ");
  }
  const int64_t hidden = config().hidden, ffn = config().ffn, tokens = call.queries.tokens();
  const int64_t widths = 4 * hidden + 2 * ffn;
  ATTENDANT_ASSIGN_OR_RETURN(
      int64_t matmuls, CheckedProduct("multiply-adds of layers, tokens and widths",
                                      {config().layers, tokens + kBlockRows, hidden, widths}));
  ATTENDANT_ASSIGN_OR_RETURN(
      Cost cost, MeasureExact(HeadsCall(*this, call, nullptr, nullptr, nullptr), threads));
  ATTENDANT_ASSIGN_OR_RETURN(
      int64_t attention,
      CheckedProduct("multiply-adds of layers and attention", {config().layers, cost.operations}));
  Arena scratch;
  const Buffers buffers(call, *this, threads, scratch);
  cost.scratch_bytes += scratch.used_bytes();
  cost.out_heads = 1;
  cost.out_dim = hidden;
  cost.operations = matmuls + attention;
  return cost;
}

absl::Status TransformerEncoder::Run(const Call& call, ThreadPool& pool,
                                     std::span<std::byte> memory, const Outputs& outputs) const {
  Arena scratch(memory);
  const Buffers buffers(call, *this, pool.threads(), scratch);
  const std::span<std::byte> rest = memory.subspan(static_cast<size_t>(scratch.used_bytes()));
  std::vector<BlockRunner> runners;
  for (const Buffers::Thread& thread : buffers.threads) {
    runners.emplace_back(*this, call, buffers, thread);
  }
  const auto for_each_block = [&](auto work) {
    const int64_t blocks = CeilDivide(call.queries.tokens(), kBlockRows);
    pool.ParallelFor(blocks, [&](int64_t block, int thread) {
      const cpu::ScopedDenormalFlush flush;
      BlockRunner& runner = runners[static_cast<size_t>(thread)];
      runner.Begin(block);
      work(runner);
    });
  };
  for_each_block([&](BlockRunner& runner) {
    runner.ReadStates();
    runner.ProjectQkv(layers_.front());
  });
  Call heads = HeadsCall(*this, call, buffers.q, buffers.k, buffers.v);
  const OutputRows context = OutputRows::TokensFirst(buffers.context, config().heads,
                                                     config().head_dim(), call.queries.seq());
  for (size_t i = 0; i < layers_.size(); ++i) {
    const bool last = i + 1 == layers_.size();
    heads.need_weights = last ? call.need_weights : WeightsWanted::kNone;
    ATTENDANT_RETURN_IF_ERROR(RunExact(
        heads, pool, rest,
        {.out = context, .attention_weights = last ? outputs.attention_weights : nullptr}));
    for_each_block([&](BlockRunner& runner) {
      runner.FinishLayer(layers_[i]);
      if (last) {
        runner.WriteStates(outputs.out);
      } else {
        runner.ProjectQkv(layers_[i + 1]);
      }
    });
  }
  const bool failed = std::any_of(runners.begin(), runners.end(),
                                  [](const BlockRunner& runner) { return runner.failed(); });
  return failed ? absl::InternalError("oneDNN failed to multiply") : absl::OkStatus();
}

absl::Status TransformerEncoder::RunReference(const Call& call, const Outputs& outputs) const {
  reference::TransformerEncoder(config(), weights_, call, outputs);
  return absl::OkStatus();
}

}  // namespace attendant::attention
