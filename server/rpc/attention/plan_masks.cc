// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "server/rpc/attention/plan_parts.h"

namespace attendant {
namespace {

// Below rank 4, the dims that are not there are 1: [query_len, key_len] and
// [batch, query_len, key_len].
absl::Status PlanMaskTensor(const v1::Tensor& tensor, AttentionTask& task) {
  const absl::StatusOr<WireTensor> mask = ReadTensor("mask", tensor, kMaxTensorRank);
  if (!mask.ok()) return mask.status();
  if (mask->rank() < 2) {
    return InvalidAttend("mask: shape is ", ShapeText(mask->shape),
                         ", it must be [query_len, key_len], [batch, query_len, key_len] or "
                         "[batch, heads, query_len, key_len]");
  }
  using Type = attention::MaskTensor::Type;
  attention::MaskTensor& planned = task.call.mask.tensor;
  planned.type = mask->is_bool                         ? Type::kBool
                 : mask->format == NumberFormat::kBf16 ? Type::kBf16
                                                       : Type::kF32;
  planned.dims = {mask->rank() > 2 ? mask->dim(0) : 1, mask->rank() == 4 ? mask->dim(1) : 1,
                  mask->dim(mask->rank() - 2), mask->dim(mask->rank() - 1)};
  const int64_t value_bytes = planned.type == Type::kBool ? 1 : planned.type == Type::kBf16 ? 2 : 4;
  task.operand_bytes += mask->count * value_bytes;
  return absl::OkStatus();
}

absl::Status PlanKeyPadding(const v1::Tensor& tensor, AttentionTask& task) {
  const absl::StatusOr<WireTensor> mask = ReadTensor("key_padding_mask", tensor, kMaxTensorRank);
  if (!mask.ok()) return mask.status();
  if (!mask->is_bool) return InvalidAttend("key_padding_mask.dtype must be BOOL");
  const attention::Sequences& keys = task.call.keys;
  const std::vector<int64_t> expected = keys.packed()
                                            ? std::vector<int64_t>{keys.tokens()}
                                            : std::vector<int64_t>{keys.batch(), keys.seq()};
  if (mask->shape != expected) {
    return InvalidAttend("key_padding_mask: shape is ", ShapeText(mask->shape),
                         ", key's tokens are ", ShapeText(expected));
  }
  task.call.mask.keys = {nullptr, {mask->count}};
  task.operand_bytes += mask->count;
  return absl::OkStatus();
}

absl::Status ReadBase(absl::string_view field, float value, float& base) {
  if (value == 0) return absl::OkStatus();  // the default
  base = value;
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return InvalidAttend(field, " is ", value, ", it must be positive");
}

absl::Status PlanLearned(const v1::Tensor& tensor, AttentionTask& task) {
  const absl::StatusOr<WireTensor> table = ReadNumbers("added.learned", tensor, kMaxTensorRank);
  if (!table.ok()) return table.status();
  const attention::Call& call = task.call;
  const int64_t len = std::max(call.queries.max_len(), call.keys.max_len());
  const bool same_dims = call.key.dim == call.query.dim &&
                         (!task.positions.to_value || call.value.dim == call.query.dim);
  if (table->rank() != 2 || table->dim(1) != call.query.dim || table->dim(0) < len || !same_dims) {
    return InvalidAttend("added.learned: shape is ", ShapeText(table->shape), ", it must be [", len,
                         " or more, ", call.query.dim,
                         "], which all operands' rows have: key's are ", call.key.dim, ", value's ",
                         call.value.dim);
  }
  task.operand_bytes += table->count * static_cast<int64_t>(sizeof(float));
  task.positions.is_learned = true;
  return absl::OkStatus();
}

absl::Status PlanAdded(const v1::AddedPositions& added, AttentionTask& task) {
  task.positions.to_value = added.to_value();
  switch (added.table_case()) {
    case v1::AddedPositions::kSinusoidal:
      task.positions.sinusoidal = true;
      return ReadBase("added.sinusoidal.base", added.sinusoidal().base(), task.positions.base);
    case v1::AddedPositions::kLearned:
      return PlanLearned(added.learned(), task);
    case v1::AddedPositions::TABLE_NOT_SET:
      break;
  }
  return InvalidAttend("added has neither sinusoidal nor learned");
}

absl::Status PlanRotary(const v1::RotaryPositions& rotary, AttentionTask& task) {
  if (task.module_heads > 0) {
    return absl::UnimplementedError(
        "rotary turns queries and keys, which multi_head and modules make themselves");
  }
  attention::RotaryOptions& options = task.positions.rotary.emplace();
  options.interleaved = rotary.interleaved();
  for (const auto& [field, dim] :
       {std::pair{"query", task.call.query.dim}, std::pair{"key", task.call.key.dim}}) {
    if (dim % 2 != 0) {
      return InvalidAttend("rotary turns pairs, but ", field, " has ", dim, " dims");
    }
  }
  return ReadBase("rotary.base", rotary.base(), options.base);
}

absl::Status PlanAlibi(const v1::AlibiPositions& alibi, AttentionTask& task) {
  const int64_t heads = ScoreHeads(task);
  if (alibi.slopes().empty()) {
    task.alibi_slopes = attention::AlibiSlopes(heads);
  } else if (alibi.slopes_size() == heads) {
    task.alibi_slopes.assign(alibi.slopes().begin(), alibi.slopes().end());
  } else {
    return InvalidAttend("alibi.slopes has ", alibi.slopes_size(), " values, there are ", heads,
                         " heads");
  }
  task.call.mask.alibi_slopes = task.alibi_slopes;
  return absl::OkStatus();
}

}  // namespace

absl::Status PlanMasks(const v1::AttendRequest& request, AttentionTask& task) {
  if (request.has_mask()) {
    if (absl::Status status = PlanMaskTensor(request.mask(), task); !status.ok()) return status;
  }
  if (!request.has_key_padding_mask()) return absl::OkStatus();
  return PlanKeyPadding(request.key_padding_mask(), task);
}

absl::Status PlanPositions(const v1::AttendRequest& request, AttentionTask& task) {
  switch (request.position_case()) {
    case v1::AttendRequest::POSITION_NOT_SET:
      return absl::OkStatus();
    case v1::AttendRequest::kAdded:
      return PlanAdded(request.added(), task);
    case v1::AttendRequest::kRotary:
      return PlanRotary(request.rotary(), task);
    case v1::AttendRequest::kAlibi:
      return PlanAlibi(request.alibi(), task);
  }
  return absl::OkStatus();
}

}  // namespace attendant
