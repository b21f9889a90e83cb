// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/modules/multi_head.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/attention/check_call.h"
#include "kernels/attention/exact/exact_attention.h"
#include "kernels/attention/modules/token_rows.h"
#include "kernels/attention/reference/reference_module.h"
#include "kernels/attention/registry.h"
#include "kernels/core/arena.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/denormals.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::attention {
namespace {

int64_t Blocks(int64_t tokens) { return CeilDivide(tokens, kBlockRows); }

}  // namespace

absl::StatusOr<MultiHeadProjections> MultiHeadProjections::Create(
    MatmulCache& cache, const MultiHeadWeights& weights, const ModuleLinear::Options& output) {
  const ModuleLinear::Options inner{.add_bias = true, .dtype_outputs = true};
  ATTENDANT_ASSIGN_OR_RETURN(ModuleLinear query, ModuleLinear::Create(cache, weights.query, inner));
  ATTENDANT_ASSIGN_OR_RETURN(ModuleLinear key, ModuleLinear::Create(cache, weights.key, inner));
  ATTENDANT_ASSIGN_OR_RETURN(ModuleLinear value, ModuleLinear::Create(cache, weights.value, inner));
  ATTENDANT_ASSIGN_OR_RETURN(ModuleLinear out, ModuleLinear::Create(cache, weights.output, output));
  return MultiHeadProjections{std::move(query), std::move(key), std::move(value), std::move(out)};
}

int64_t MultiHeadProjections::bytes() const {
  return query.bytes() + key.bytes() + value.bytes() + output.bytes();
}

Call HeadsCall(const Module& module, const Call& outer, const std::byte* q, const std::byte* k,
               const std::byte* v) {
  Call call = outer;
  call.kind = Kind::kDotProduct;
  call.module = nullptr;
  call.isa = &module.isa();
  const int64_t heads = module.config().heads, head_dim = module.config().head_dim();
  call.query = InputRows::TokensFirst(q, heads, head_dim, call.queries.seq());
  call.key = InputRows::TokensFirst(k, heads, head_dim, call.keys.seq());
  call.value = InputRows::TokensFirst(v, heads, head_dim, call.keys.seq());
  return call;
}

absl::Status CheckModuleCall(const Module& module, const Call& call) {
  const ModuleConfig& config = module.config();
  if (call.kind != module.kind()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the call is not of the module's kind, ", FindOperator(module.kind())->name));
  }
  if (call.dtype != module.dtype()) {
    return absl::InvalidArgumentError(absl::StrCat("the call is in ", DTypeName(call.dtype),
                                                   ", the module in ", DTypeName(module.dtype())));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckCall(call, config.heads, /*gives_weights=*/true));
  ATTENDANT_RETURN_IF_ERROR(
      CheckEqual("query", call.query.heads, "the module's input", 1, "heads"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckEqual("query", call.query.dim, "the module", config.hidden, "dims"));
  ATTENDANT_RETURN_IF_ERROR(CheckEqual("key", call.key.dim, "the module", config.key_dim, "dims"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckEqual("value", call.value.dim, "the module", config.value_dim, "dims"));
  return absl::OkStatus();
}

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
    for (int i = 0; i < num_threads; ++i) {
      threads.push_back(
          {.block = scratch.Allocate<std::byte>(block_bytes),
           .scratchpad = scratch.Allocate<std::byte>(module.cache_.scratchpad_bytes())});
    }
  }

  std::byte *q, *k, *v, *context;  // [tokens rounded up, hidden], of the call's dtype
  std::vector<Thread> threads;
};

// One of query, key and value on its way through its projection.
struct MultiHead::Side {
  const ModuleLinear& linear;
  const InputRows& rows;
  const Sequences& sequences;
  std::byte* out;  // [tokens rounded up, hidden]
};

MultiHead::MultiHead(const ModuleConfig& config, ModuleWeights weights, MatmulCache cache,
                     MultiHeadProjections projections, const cpu::IsaLevel& isa)
    : Module(config, cache.dtype(), isa),
      weights_(std::move(weights)),
      cache_(std::move(cache)),
      projections_(std::move(projections)) {}

absl::StatusOr<std::unique_ptr<const Module>> MultiHead::Create(const ModuleConfig& config,
                                                                ModuleWeights weights, DType dtype,
                                                                const cpu::IsaLevel& isa) {
  MatmulCache cache(dtype, isa.kernels);
  ATTENDANT_ASSIGN_OR_RETURN(
      MultiHeadProjections projections,
      MultiHeadProjections::Create(cache, weights.attention,
                                   {.add_bias = true, .dtype_outputs = true}));
  return std::unique_ptr<const Module>(
      new MultiHead(config, std::move(weights), std::move(cache), std::move(projections), isa));
}

absl::StatusOr<Cost> MultiHead::Measure(const Call& call, int threads) const {
  ATTENDANT_RETURN_IF_ERROR(CheckModuleCall(*this, call));
  const int64_t hidden = config().hidden;
  const int64_t widest = std::max({hidden, config().key_dim, config().value_dim});
  for (const Sequences* side : {&call.queries, &call.keys}) {
    ATTENDANT_RETURN_IF_ERROR(CheckedProduct("tokens and widths of projections",
                                             {side->tokens() + kBlockRows, widest, 4 * hidden}));
  }
  const Call heads = HeadsCall(*this, call, nullptr, nullptr, nullptr);
  ATTENDANT_ASSIGN_OR_RETURN(Cost cost, MeasureExact(heads, threads));
  Arena scratch;
  const Buffers buffers(call, *this, threads, scratch);
  cost.scratch_bytes += scratch.used_bytes();
  cost.out_heads = 1;
  cost.out_dim = hidden;
  cost.operations += call.queries.tokens() * 2 * hidden * hidden +
                     call.keys.tokens() * hidden * (config().key_dim + config().value_dim);
  return cost;
}

void MultiHead::ProjectBlock(const Call& call, const Side& side, int64_t begin,
                             ModuleLinearExecutor& executor, std::byte* block) const {
  const int64_t count = std::min(kBlockRows, side.sequences.tokens() - begin);
  const std::byte* x = GatherRows(side.rows, side.sequences, call.dtype, begin, count, block);
  executor.Run(side.linear, cpu::RoundUpRows(count), x,
               side.out + begin * config().hidden * ValueBytes(call.dtype));
}

void MultiHead::OutputBlock(const Call& call, const std::byte* context, int64_t begin,
                            ModuleLinearExecutor& executor, std::byte* block,
                            const Outputs& outputs) const {
  const int64_t count = std::min(kBlockRows, call.queries.tokens() - begin);
  const std::byte* x = context + begin * config().hidden * ValueBytes(call.dtype);
  const bool direct = LieEndToEnd(outputs.out, call.queries) && count % cpu::kRowGranularity == 0;
  std::byte* y = direct ? TokenRow(outputs.out, call.queries, call.dtype, begin) : block;
  executor.Run(projections_.output, cpu::RoundUpRows(count), x, y);
  if (!direct) ScatterRows(y, outputs.out, call.queries, call.dtype, begin, count);
}

absl::Status MultiHead::Run(const Call& call, ThreadPool& pool, std::span<std::byte> memory,
                            const Outputs& outputs) const {
  Arena scratch(memory);
  const Buffers buffers(call, *this, pool.threads(), scratch);
  std::vector<ModuleLinearExecutor> executors;
  for (const Buffers::Thread& thread : buffers.threads) {
    executors.emplace_back(thread.scratchpad);
  }
  const Side sides[] = {{projections_.query, call.query, call.queries, buffers.q},
                        {projections_.key, call.key, call.keys, buffers.k},
                        {projections_.value, call.value, call.keys, buffers.v}};
  const int64_t queries = Blocks(call.queries.tokens()), keys = Blocks(call.keys.tokens());
  pool.ParallelFor(queries + 2 * keys, [&](int64_t index, int thread) {
    const cpu::ScopedDenormalFlush flush;
    const bool is_query = index < queries;
    const int64_t place = is_query ? index : index - queries;
    ProjectBlock(call, sides[is_query ? 0 : 1 + place / keys],
                 (is_query ? place : place % keys) * kBlockRows,
                 executors[static_cast<size_t>(thread)],
                 buffers.threads[static_cast<size_t>(thread)].block);
  });
  const Call heads = HeadsCall(*this, call, buffers.q, buffers.k, buffers.v);
  const OutputRows context = OutputRows::TokensFirst(buffers.context, config().heads,
                                                     config().head_dim(), call.queries.seq());
  ATTENDANT_RETURN_IF_ERROR(
      RunExact(heads, pool, memory.subspan(static_cast<size_t>(scratch.used_bytes())),
               {.out = context, .attention_weights = outputs.attention_weights}));
  pool.ParallelFor(queries, [&](int64_t index, int thread) {
    const cpu::ScopedDenormalFlush flush;
    OutputBlock(call, buffers.context, index * kBlockRows, executors[static_cast<size_t>(thread)],
                buffers.threads[static_cast<size_t>(thread)].block, outputs);
  });
  const bool failed =
      std::any_of(executors.begin(), executors.end(),
                  [](const ModuleLinearExecutor& executor) { return executor.failed(); });
  return failed ? absl::InternalError("oneDNN failed to multiply") : absl::OkStatus();
}

absl::Status MultiHead::RunReference(const Call& call, const Outputs& outputs) const {
  reference::MultiHeadAttention(config(), weights_.attention, call, outputs);
  return absl::OkStatus();
}

}  // namespace attendant::attention
