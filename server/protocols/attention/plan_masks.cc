// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/attention/plan_masks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/core/base/distances.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

// Below rank 4, the dims that are not there are 1: [query_len, key_len] and
// [batch, query_len, key_len].
absl::Status PlanMaskTensor(const v1::Tensor& tensor, AttendPlan& plan) {
  ATTENDANT_ASSIGN_OR_RETURN(const WireTensor mask, ReadTensor("mask", tensor, kMaxTensorRank));
  if (mask.rank() < 2) {
    return InvalidAttend("mask: shape is ", ShapeText(mask.shape),
                         ", it must be [query_len, key_len], [batch, query_len, key_len] or "
                         "[batch, heads, query_len, key_len]");
  }
  using Type = attention::MaskTensor::Type;
  attention::MaskTensor& planned = plan.call.mask.tensor;
  planned.type = mask.is_bool                         ? Type::kBool
                 : mask.format == NumberFormat::kBf16 ? Type::kBf16
                                                      : Type::kF32;
  planned.dims = {mask.rank() > 2 ? mask.dim(0) : 1, mask.rank() == 4 ? mask.dim(1) : 1,
                  mask.dim(mask.rank() - 2), mask.dim(mask.rank() - 1)};
  const int64_t value_bytes = planned.type == Type::kBool ? 1 : planned.type == Type::kBf16 ? 2 : 4;
  plan.operand_bytes += mask.count * value_bytes;
  plan.mask = mask;
  return absl::OkStatus();
}

absl::Status PlanKeyPadding(const v1::Tensor& tensor, AttendPlan& plan) {
  ATTENDANT_ASSIGN_OR_RETURN(const WireTensor mask,
                             ReadTensor("key_padding_mask", tensor, kMaxTensorRank));
  if (!mask.is_bool) return InvalidAttend("key_padding_mask.dtype must be BOOL");
  const attention::Sequences& keys = plan.call.keys;
  const std::vector<int64_t> expected = keys.packed()
                                            ? std::vector<int64_t>{keys.tokens()}
                                            : std::vector<int64_t>{keys.batch(), keys.seq()};
  if (mask.shape != expected) {
    return InvalidAttend("key_padding_mask: shape is ", ShapeText(mask.shape),
                         ", key's tokens are ", ShapeText(expected));
  }
  plan.operand_bytes += mask.count;
  plan.call.mask.keys = {nullptr, {mask.count}};
  plan.key_mask = mask;
  return absl::OkStatus();
}

absl::Status ReadBase(absl::string_view field, float value, float& base) {
  if (value == 0) return absl::OkStatus();  // the default
  base = value;
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return InvalidAttend(field, " is ", value, ", it must be positive");
}

absl::Status PlanLearned(const v1::Tensor& tensor, AttendPlan& plan) {
  ATTENDANT_ASSIGN_OR_RETURN(const WireTensor table,
                             ReadNumbers("added.learned", tensor, kMaxTensorRank));
  const attention::Call& call = plan.call;
  const int64_t len = std::max(call.queries.max_len(), call.keys.max_len());
  const bool same_dims = call.key.dim == call.query.dim &&
                         (!plan.positions.to_value || call.value.dim == call.query.dim);
  if (table.rank() != 2 || table.dim(1) != call.query.dim || table.dim(0) < len || !same_dims) {
    return InvalidAttend("added.learned: shape is ", ShapeText(table.shape), ", it must be [", len,
                         " or more, ", call.query.dim,
                         "], which all operands' rows have: key's are ", call.key.dim, ", value's ",
                         call.value.dim);
  }
  plan.operand_bytes += table.count * static_cast<int64_t>(sizeof(float));
  plan.positions.learned = table;
  return absl::OkStatus();
}

absl::Status PlanAdded(const v1::AddedPositions& added, AttendPlan& plan) {
  plan.positions.to_value = added.to_value();
  switch (added.table_case()) {
    case v1::AddedPositions::kSinusoidal:
      plan.positions.sinusoidal = true;
      return ReadBase("added.sinusoidal.base", added.sinusoidal().base(), plan.positions.base);
    case v1::AddedPositions::kLearned:
      return PlanLearned(added.learned(), plan);
    case v1::AddedPositions::TABLE_NOT_SET:
      break;
  }
  return InvalidAttend("added has neither sinusoidal nor learned");
}

absl::Status PlanRotary(const v1::RotaryPositions& rotary, AttendPlan& plan) {
  if (plan.module_heads > 0) {
    return absl::UnimplementedError(
        "rotary turns queries and keys, which multi_head and modules make themselves");
  }
  attention::RotaryOptions& options = plan.positions.rotary.emplace();
  options.interleaved = rotary.interleaved();
  for (const auto& [field, dim] :
       {std::pair{"query", plan.call.query.dim}, std::pair{"key", plan.call.key.dim}}) {
    if (dim % 2 != 0) {
      return InvalidAttend("rotary turns pairs, but ", field, " has ", dim, " dims");
    }
  }
  return ReadBase("rotary.base", rotary.base(), options.base);
}

absl::Status PlanAlibi(const v1::AlibiPositions& alibi, AttendPlan& plan) {
  const int64_t heads = plan.score_heads();
  if (alibi.slopes().empty()) {
    plan.alibi_slopes = AlibiSlopes(heads);
  } else if (alibi.slopes_size() == heads) {
    plan.alibi_slopes.assign(alibi.slopes().begin(), alibi.slopes().end());
  } else {
    return InvalidAttend("alibi.slopes has ", alibi.slopes_size(), " values, there are ", heads,
                         " heads");
  }
  plan.call.mask.alibi_slopes = plan.alibi_slopes;
  return absl::OkStatus();
}

}  // namespace

absl::Status PlanMasks(const v1::AttendRequest& request, AttendPlan& plan) {
  if (request.has_mask()) {
    ATTENDANT_RETURN_IF_ERROR(PlanMaskTensor(request.mask(), plan));
  }
  if (!request.has_key_padding_mask()) return absl::OkStatus();
  return PlanKeyPadding(request.key_padding_mask(), plan);
}

absl::Status PlanPositions(const v1::AttendRequest& request, AttendPlan& plan) {
  switch (request.position_case()) {
    case v1::AttendRequest::POSITION_NOT_SET:
      return absl::OkStatus();
    case v1::AttendRequest::kAdded:
      return PlanAdded(request.added(), plan);
    case v1::AttendRequest::kRotary:
      return PlanRotary(request.rotary(), plan);
    case v1::AttendRequest::kAlibi:
      return PlanAlibi(request.alibi(), plan);
  }
  return absl::OkStatus();
}

}  // namespace attendant
