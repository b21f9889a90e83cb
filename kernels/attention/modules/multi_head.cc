// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "kernels/attention/check_call.h"
#include "kernels/attention/modules/module_types.h"
#include "kernels/attention/modules/token_rows.h"
#include "kernels/attention/reference/reference_module.h"
#include "kernels/core/arena.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/matmul/packed_linear.h"
#include "kernels/cpu/simd/denormals.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::attention {
namespace {

// Rows of a block that one thread projects at a time: enough for the matmul's full speed.
constexpr int64_t kBlockRows = 128;

// A packed linear layer with its matmul, whose results are of the module's dtype.
struct Projection {
  std::unique_ptr<cpu::Matmul> matmul;
  Arena memory;
  cpu::PackedLinear linear;
};

// The rows of one operand on their way through a projection.
struct Path {
  const Projection& projection;
  const Sequences& sequences;
  InputRows from;
  OutputRows to;
};

class MultiHead final : public Module {
 public:
  MultiHead(const ModuleConfig& config, ModuleWeights weights, DType dtype,
            const cpu::IsaLevel& isa)
      : Module(config, dtype, isa), weights_(std::move(weights)) {}

  // Packs the weights; then it does not change.
  absl::Status Pack();

  int64_t weight_bytes() const override {
    int64_t bytes = 0;
    for (const Projection& projection : projections_) bytes += projection.linear.bytes();
    return bytes;
  }
  absl::StatusOr<Cost> Measure(const Call& call, int threads) const override;
  absl::Status Run(const Call& call, ThreadPool& pool, std::span<std::byte> memory,
                   const Outputs& outputs) const override;
  absl::Status RunReference(const Call& call, const Outputs& outputs) const override {
    reference::MultiHeadAttention(config(), weights_.attention, call, outputs);
    return absl::OkStatus();
  }

 private:
  struct Buffers;

  absl::Status Project(std::span<const Path> paths, const Buffers& buffers, ThreadPool& pool) const;

  ModuleWeights weights_;                  // as they came, for the reference
  std::array<Projection, 4> projections_;  // query, key, value, output
};

// The layout of a call's scratch.
struct MultiHead::Buffers {
  Buffers(const Call& call, const MultiHead& module, int num_threads, Arena& scratch) {
    const ModuleConfig& config = module.config();
    const int64_t value_bytes = ValueBytes(call.dtype);
    const auto rows = [&](const Sequences& sequences) {
      const int64_t values = cpu::RoundUpRows(sequences.tokens()) * config.hidden;
      return scratch.Allocate<std::byte>(values * value_bytes);
    };
    q = rows(call.queries);
    k = rows(call.keys);
    v = rows(call.keys);
    context = rows(call.queries);
    const int64_t widest = std::max({config.hidden, config.key_dim, config.value_dim});
    size_t scratchpad_bytes = 0;
    for (const Projection& projection : module.projections_) {
      scratchpad_bytes = std::max(scratchpad_bytes, projection.matmul->scratchpad_bytes());
    }
    for (int i = 0; i < num_threads; ++i) {
      x.push_back(scratch.Allocate<std::byte>(kBlockRows * widest * value_bytes));
      y.push_back(scratch.Allocate<std::byte>(kBlockRows * config.hidden * value_bytes));
      scratchpads.push_back(scratch.Allocate<std::byte>(static_cast<int64_t>(scratchpad_bytes)));
    }
  }

  std::byte *q, *k, *v, *context;  // [tokens rounded up, hidden], of the call's dtype
  // Of each thread: [kBlockRows, the widest operand], [kBlockRows, hidden].
  std::vector<std::byte*> x, y, scratchpads;
};

absl::Status MultiHead::Project(std::span<const Path> paths, const Buffers& buffers,
                                ThreadPool& pool) const {
  std::vector<std::unique_ptr<cpu::MatmulExecutor>> executors;  // [threads, paths]
  int64_t blocks = 0;
  for (std::byte* scratchpad : buffers.scratchpads) {
    for (const Path& path : paths) {
      executors.push_back(path.projection.matmul->NewExecutor(scratchpad));
    }
  }
  for (const Path& path : paths) blocks += CeilDivide(path.sequences.tokens(), kBlockRows);
  std::atomic<bool> failed = false;
  pool.ParallelFor(blocks, [&](int64_t block, int thread) {
    const cpu::ScopedDenormalFlush flush;
    size_t i = 0;
    for (; block * kBlockRows >= paths[i].sequences.tokens(); ++i) {
      block -= CeilDivide(paths[i].sequences.tokens(), kBlockRows);
    }
    const Path& path = paths[i];
    const auto of_thread = static_cast<size_t>(thread);
    const int64_t begin = block * kBlockRows;
    const int64_t count = std::min(kBlockRows, path.sequences.tokens() - begin);
    const std::byte* x =
        GatherRows(path.from, path.sequences, dtype(), begin, count, buffers.x[of_thread]);
    const bool direct = LieEndToEnd(path.to, path.sequences) && count % cpu::kRowGranularity == 0;
    std::byte* y =
        direct ? TokenRow(path.to, path.sequences, dtype(), begin) : buffers.y[of_thread];
    const cpu::PackedLinear& linear = path.projection.linear;
    if (!executors[of_thread * paths.size() + i]->Run(cpu::RoundUpRows(count), x, linear.weight,
                                                      {.bias = linear.bias.data()}, y)) {
      failed = true;
    }
    if (!direct) ScatterRows(y, path.to, path.sequences, dtype(), begin, count);
  });
  return failed ? absl::InternalError("oneDNN could not execute a matmul") : absl::OkStatus();
}

absl::Status MultiHead::Pack() {
  const MultiHeadWeights& from = weights_.attention;
  Projection* to = projections_.data();
  for (const LinearWeights* linear :
       {&from.query, &from.key, &from.value, &from.attention_output}) {
    ATTENDANT_ASSIGN_OR_RETURN(
        to->matmul,
        cpu::CreateMatmul(isa(), {.dtype = dtype(),
                                  .k = linear->weight.dim(1),
                                  .n = linear->weight.dim(0),
                                  .max_rows = kBlockRows,
                                  .bias = true,
                                  .output = dtype() == DType::kBf16 ? cpu::MatmulOutput::kBf16
                                                                    : cpu::MatmulOutput::kSums}));
    to->memory = Arena(to->matmul->packed_bytes());
    to->linear = cpu::PackLinear(*to->matmul, {linear}, to->memory);
    ++to;
  }
  return absl::OkStatus();
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
  Arena scratch(memory);
  const Buffers buffers(call, *this, pool.threads(), scratch);
  const int64_t hidden = config().hidden;
  const auto out = [&](std::byte* rows, const Sequences& sequences) {
    return OutputRows::TokensFirst(rows, 1, hidden, sequences.seq());
  };
  const Path inputs[] = {{projections_[0], call.queries, call.query, out(buffers.q, call.queries)},
                         {projections_[1], call.keys, call.key, out(buffers.k, call.keys)},
                         {projections_[2], call.keys, call.value, out(buffers.v, call.keys)}};
  ATTENDANT_RETURN_IF_ERROR(Project(inputs, buffers, pool));
  ATTENDANT_RETURN_IF_ERROR(RunHeads(call, {buffers.q, buffers.k, buffers.v, hidden}, pool,
                                     memory.subspan(static_cast<size_t>(scratch.used_bytes())),
                                     buffers.context, outputs.attention_weights));
  const Path output{projections_[3], call.queries,
                    InputRows::TokensFirst(buffers.context, 1, hidden, call.queries.seq()),
                    outputs.out};
  return Project({&output, 1}, buffers, pool);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Module>> MakeMultiHead(const ModuleConfig& config,
                                                            ModuleWeights weights, DType dtype,
                                                            const cpu::IsaLevel& isa) {
  auto module = std::make_unique<MultiHead>(config, std::move(weights), dtype, isa);
  ATTENDANT_RETURN_IF_ERROR(module->Pack());
  return module;
}

}  // namespace attendant::attention
