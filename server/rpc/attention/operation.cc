// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/attention/operation.h"

#include "kernels/core/arena.h"

namespace attendant {
namespace {

// The same rows, to be changed.
attention::PositionedRows Positioned(const attention::InputRows& rows,
                                     const attention::Sequences& sequences, DType dtype,
                                     Buffer& values) {
  return {.sequences = sequences,
          .dtype = dtype,
          .rows = {values.data(), rows.heads, rows.dim, rows.batch_stride, rows.head_stride,
                   rows.row_stride}};
}

}  // namespace

absl::Status AttentionTask::AddTable(attention::InputRows operand,
                                     const attention::Sequences& sequences, Buffer& values,
                                     ThreadPool& pool) const {
  const attention::PositionedRows rows = Positioned(operand, sequences, call.dtype, values);
  if (positions.is_learned) {
    const int64_t count = static_cast<int64_t>(positions.learned.size()) / operand.dim;
    return attention::AddPositions({positions.learned.data(), {count, operand.dim}}, rows, pool);
  }
  const int64_t count = sequences.max_len();
  std::vector<float> table(static_cast<size_t>(count * operand.dim));
  attention::FillSinusoidal(count, operand.dim, positions.base, table.data());
  return attention::AddPositions({table.data(), {count, operand.dim}}, rows, pool);
}

absl::Status AttentionTask::PutPositionsIn(ThreadPool& pool) {
  struct Side {
    const attention::InputRows& rows;
    const attention::Sequences& sequences;
    Buffer& values;
    bool positioned;
  };
  const bool to_value = positions.added() && positions.to_value;
  for (const Side& side : {Side{call.query, call.queries, query, positions.any()},
                           Side{call.key, call.keys, key, positions.any()},
                           Side{call.value, call.keys, value, to_value}}) {
    if (!side.positioned || side.values.empty()) continue;
    const absl::Status status =
        positions.rotary.has_value()
            ? attention::Rotate(*positions.rotary,
                                Positioned(side.rows, side.sequences, call.dtype, side.values),
                                pool)
            : AddTable(side.rows, side.sequences, side.values, pool);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status AttentionTask::Run(ThreadPool& pool) {
  if (absl::Status status = PutPositionsIn(pool); !status.ok()) return status;
  // The plan measured for the largest worker; this one may have fewer threads.
  const absl::StatusOr<attention::Cost> here = attention::Measure(call, pool.threads());
  if (!here.ok()) return here.status();
  // An arena hands out whole multiples of its alignment.
  Arena arena(static_cast<size_t>(here->scratch_bytes) + Arena::kAlignment);
  std::byte* const scratch = arena.Allocate<std::byte>(here->scratch_bytes);
  out.resize(static_cast<size_t>(cost.out_bytes));
  weights.resize(static_cast<size_t>(cost.weights_bytes) / sizeof(float));
  const int64_t seq = call.queries.seq();
  const attention::Outputs outputs{
      .out =
          with_heads && !call.queries.packed()
              ? attention::OutputRows::HeadsFirst(out.data(), cost.out_heads, cost.out_dim, seq)
              : attention::OutputRows::TokensFirst(out.data(), cost.out_heads, cost.out_dim, seq),
      .weights = weights.empty() ? nullptr : weights.data()};
  return attention::Run(call, pool, {scratch, static_cast<size_t>(here->scratch_bytes)}, outputs);
}

}  // namespace attendant
