// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/modules/multi_head.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/attention/check_call.h"
#include "kernels/attention/modules/token_rows.h"
#include "kernels/attention/reference/reference_module.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/denormals.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::attention {
namespace {

// Rows of a block that one thread projects at a time: enough for the matmul's full speed.
constexpr int64_t kBlockRows = 128;

int64_t Blocks(int64_t tokens) { return CeilDivide(tokens, kBlockRows); }

}  // namespace

// The layout of a call's scratch.
struct MultiHead::Buffers {
  struct Thread {
    std::byte* block;  // [kBlockRows, the widest operand]
    std::byte* scratchpad;
  };

  Buffers(const Call& call, const MultiHead& module, int num_threads, Arena& scratch) {
    const ModuleConfig& config = module.config();
    const int64_t row_bytes = config.hidden * ValueBytes(call.dtype);
    const int64_t queries = cpu::RoundUpRows(call.queries.tokens());
    const int64_t keys = cpu::RoundUpRows(call.keys.tokens());
    q = scratch.Allocate<std::byte>(queries * row_bytes);
    k = scratch.Allocate<std::byte>(keys * row_bytes);
    v = scratch.Allocate<std::byte>(keys * row_bytes);
    context = scratch.Allocate<std::byte>(queries * row_bytes);
    const int64_t block_bytes = kBlockRows * ValueBytes(call.dtype) *
                                std::max({config.hidden, config.key_dim, config.value_dim});
    size_t scratchpad_bytes = 0;
    for (const Projection& projection : module.projections_) {
      scratchpad_bytes = std::max(scratchpad_bytes, projection.matmul->scratchpad_bytes());
    }
    for (int i = 0; i < num_threads; ++i) {
      threads.push_back(
          {.block = scratch.Allocate<std::byte>(block_bytes),
           .scratchpad = scratch.Allocate<std::byte>(static_cast<int64_t>(scratchpad_bytes))});
    }
  }

  std::byte *q, *k, *v, *context;  // [tokens rounded up, hidden], of the call's dtype
  std::vector<Thread> threads;
};

// Runs projections on blocks of rows, on every thread of a call.
class MultiHead::Projector {
 public:
  Projector(const MultiHead& module, const std::vector<Buffers::Thread>& threads) {
    for (const Buffers::Thread& buffers : threads) {
      Thread& thread = threads_.emplace_back();
      thread.block = buffers.block;
      for (const Projection& projection : module.projections_) {
        thread.executors.push_back(projection.matmul->NewExecutor(buffers.scratchpad));
      }
    }
  }

  bool failed() const {
    return std::any_of(threads_.begin(), threads_.end(),
                       [](const Thread& thread) { return thread.failed; });
  }
  std::byte* block(int thread) const { return threads_[static_cast<size_t>(thread)].block; }

  // y [rows, hidden] = x weight^T + bias
  void Run(const MultiHead& module, size_t index, int64_t rows, const void* x, int thread,
           void* y) {
    const cpu::PackedLinear& linear = module.projections_[index].linear;
    Thread& of = threads_[static_cast<size_t>(thread)];
    of.failed |=
        !of.executors[index]->Run(cpu::RoundUpRows(rows), x, linear.weight, linear.bias.data(), y);
  }

 private:
  struct Thread {
    std::byte* block = nullptr;
    std::vector<std::unique_ptr<cpu::MatmulExecutor>> executors;
    bool failed = false;
  };
  std::vector<Thread> threads_;
};

absl::StatusOr<std::unique_ptr<const Module>> MultiHead::Create(const ModuleConfig& config,
                                                                ModuleWeights weights, DType dtype,
                                                                const cpu::IsaLevel& isa) {
  std::unique_ptr<MultiHead> module(new MultiHead(config, std::move(weights), dtype, isa));
  const MultiHeadWeights& from = module->weights_.attention;
  Projection* to = module->projections_.data();
  for (const LinearWeights* linear :
       {&from.query, &from.key, &from.value, &from.attention_output}) {
    ATTENDANT_ASSIGN_OR_RETURN(
        to->matmul, cpu::CreateMatmul(isa.kernels, {.dtype = dtype,
                                                    .k = linear->weight.dim(1),
                                                    .n = linear->weight.dim(0),
                                                    .max_rows = kBlockRows,
                                                    .bias = true,
                                                    .bf16_output = dtype == DType::kBf16}));
    to->memory = Arena(to->matmul->packed_bytes());
    to->linear = cpu::PackLinear(*to->matmul, {linear}, to->memory);
    ++to;
  }
  return module;
}

int64_t MultiHead::weight_bytes() const {
  int64_t bytes = 0;
  for (const Projection& projection : projections_) bytes += projection.linear.bytes();
  return bytes;
}

absl::StatusOr<Cost> MultiHead::Measure(const Call& call, int threads) const {
  ATTENDANT_ASSIGN_OR_RETURN(Cost cost, MeasureHeads(call, threads));
  const int64_t hidden = config().hidden;
  const int64_t widest = std::max({hidden, config().key_dim, config().value_dim});
  for (const Sequences* side : {&call.queries, &call.keys}) {
    ATTENDANT_RETURN_IF_ERROR(CheckedProduct("tokens and widths of projections",
                                             {side->tokens() + kBlockRows, widest, 4 * hidden}));
  }
  Arena scratch;
  const Buffers buffers(call, *this, threads, scratch);
  cost.scratch_bytes += scratch.used_bytes();
  cost.operations += call.queries.tokens() * 2 * hidden * hidden +
                     call.keys.tokens() * hidden * (config().key_dim + config().value_dim);
  return cost;
}

absl::Status MultiHead::Run(const Call& call, ThreadPool& pool, std::span<std::byte> memory,
                            const Outputs& outputs) const {
  struct Side {
    const InputRows& rows;
    const Sequences& sequences;
    std::byte* out;  // [tokens rounded up, hidden]
  };
  Arena scratch(memory);
  const Buffers buffers(call, *this, pool.threads(), scratch);
  const int64_t row_bytes = config().hidden * ValueBytes(call.dtype);
  Projector projector(*this, buffers.threads);
  const Side sides[] = {{call.query, call.queries, buffers.q},
                        {call.key, call.keys, buffers.k},
                        {call.value, call.keys, buffers.v}};
  const int64_t queries = Blocks(call.queries.tokens()), keys = Blocks(call.keys.tokens());
  pool.ParallelFor(queries + 2 * keys, [&](int64_t index, int thread) {
    const cpu::ScopedDenormalFlush flush;
    const bool is_query = index < queries;
    const int64_t place = is_query ? index : index - queries;
    const int64_t begin = (is_query ? place : place % keys) * kBlockRows;
    const auto of = static_cast<size_t>(is_query ? 0 : 1 + place / keys);
    const Side& side = sides[of];
    const int64_t count = std::min(kBlockRows, side.sequences.tokens() - begin);
    const std::byte* x =
        GatherRows(side.rows, side.sequences, call.dtype, begin, count, projector.block(thread));
    projector.Run(*this, of, count, x, thread, side.out + begin * row_bytes);
  });
  ATTENDANT_RETURN_IF_ERROR(RunHeads(call, {buffers.q, buffers.k, buffers.v, config().hidden}, pool,
                                     memory.subspan(static_cast<size_t>(scratch.used_bytes())),
                                     buffers.context, outputs.attention_weights));
  pool.ParallelFor(queries, [&](int64_t index, int thread) {
    const cpu::ScopedDenormalFlush flush;
    const int64_t begin = index * kBlockRows;
    const int64_t count = std::min(kBlockRows, call.queries.tokens() - begin);
    std::byte* y = projector.block(thread);
    projector.Run(*this, 3, count, buffers.context + begin * row_bytes, thread, y);
    ScatterRows(y, outputs.out, call.queries, call.dtype, begin, count);
  });
  return projector.failed() ? absl::InternalError("oneDNN could not execute a matmul")
                            : absl::OkStatus();
}

absl::Status MultiHead::RunReference(const Call& call, const Outputs& outputs) const {
  reference::MultiHeadAttention(config(), weights_.attention, call, outputs);
  return absl::OkStatus();
}

}  // namespace attendant::attention
