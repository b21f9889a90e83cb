// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/attention/operation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/arena.h"
#include "kernels/core/base/half.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

using attention::InputRows;
using attention::PositionedRows;
using attention::Sequences;
using Buffer = AttendOperation::Buffer;

std::vector<float> CopyFloats(const WireTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.count));
  tensor.ReadFloats(values.data());
  return values;
}

Buffer CopyAsF32(const WireTensor& tensor) {
  Buffer buffer(static_cast<size_t>(tensor.count) * sizeof(float));
  tensor.ReadFloats(reinterpret_cast<float*>(buffer.data()));
  return buffer;
}

Buffer CopyBytes(const WireTensor& tensor) {
  Buffer buffer(tensor.bytes.size());
  std::memcpy(buffer.data(), tensor.bytes.data(), buffer.size());
  return buffer;
}

// Piece by piece: values that are rounded to bf16 need no f32 copy of all of them.
Buffer CopyAsBf16(const WireTensor& tensor) {
  if (tensor.format == NumberFormat::kBf16) return CopyBytes(tensor);
  constexpr size_t kPiece = 4096;
  const auto count = static_cast<size_t>(tensor.count);
  const auto value_bytes = static_cast<size_t>(BytesPerValue(tensor.format));
  Buffer buffer(count * sizeof(uint16_t));
  std::vector<float> piece(std::min(kPiece, count));
  for (size_t first = 0; first < count; first += kPiece) {
    const std::span<float> values(piece.data(), std::min(kPiece, count - first));
    ReadValues(tensor.bytes.substr(first * value_bytes, values.size() * value_bytes), tensor.format,
               values);
    auto* out = reinterpret_cast<uint16_t*>(buffer.data()) + first;
    for (size_t i = 0; i < values.size(); ++i) out[i] = ToBf16(values[i]);
  }
  return buffer;
}

Buffer CopyOperand(const WireTensor& tensor, DType dtype) {
  return dtype == DType::kBf16 ? CopyAsBf16(tensor) : CopyAsF32(tensor);
}

// Kernels multiply a score by log2(e): a finite mask value must stay finite then.
float LimitedMaskValue(float value) {
  constexpr float kLargest = 2.3e38f;
  return std::isfinite(value) ? std::clamp(value, -kLargest, kLargest) : value;
}

Buffer CopyMask(const WireTensor& tensor, attention::MaskTensor::Type type) {
  using Type = attention::MaskTensor::Type;
  if (type == Type::kBool) return CopyBytes(tensor);
  const auto count = static_cast<size_t>(tensor.count);
  Buffer buffer = type == Type::kF32 ? CopyAsF32(tensor) : CopyBytes(tensor);
  if (type == Type::kF32) {
    for (float& value : std::span(reinterpret_cast<float*>(buffer.data()), count)) {
      value = LimitedMaskValue(value);
    }
  } else {
    for (uint16_t& value : std::span(reinterpret_cast<uint16_t*>(buffer.data()), count)) {
      value = ToBf16(LimitedMaskValue(FromBf16(value)));
    }
  }
  return buffer;
}

absl::Status InMultiHead(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("multi_head: ", status.message()));
}

// The same rows, to be changed.
PositionedRows Positioned(const InputRows& rows, const Sequences& sequences, DType dtype,
                          Buffer& values) {
  return {.sequences = sequences,
          .dtype = dtype,
          .rows = {values.data(), rows.heads, rows.dim, rows.batch_stride, rows.head_stride,
                   rows.row_stride}};
}

// The operations of an operand's positions, as Cost::operations counts them.
int64_t PositionOperations(const AttendPositions& positions, const InputRows& rows,
                           const Sequences& sequences) {
  const int64_t token_values = rows.heads * rows.dim;
  if (positions.rotary.has_value()) {
    return sequences.tokens() *
           (rows.dim * attention::kAngleOperations + token_values * attention::kTurnOperations) / 2;
  }
  const int64_t table = positions.sinusoidal ? sequences.max_len() * rows.dim : 0;
  return table * attention::kSinusoidalOperations +
         sequences.tokens() * token_values * attention::kAddPositionOperations;
}

// The same of all operands that have memory of their own.
int64_t PositionOperations(const AttendPlan& plan) {
  const AttendPositions& positions = plan.positions;
  if (!positions.any()) return 0;
  const attention::Call& call = plan.call;
  int64_t operations = PositionOperations(positions, call.query, call.queries);
  if (plan.own_key) operations += PositionOperations(positions, call.key, call.keys);
  if (plan.own_value && positions.to_value)
    operations += PositionOperations(positions, call.value, call.keys);
  return operations;
}

}  // namespace

AttendOperation::AttendOperation(AttendPlan& plan, ByteBudget::Share memory)
    : memory_(std::move(memory)),
      with_heads_(plan.with_heads),
      score_heads_(plan.with_heads || plan.module_heads > 0),
      query_starts_(std::move(plan.query_starts)),
      key_starts_(std::move(plan.key_starts)),
      alibi_slopes_(std::move(plan.alibi_slopes)),
      parameters_(std::move(plan.parameters)),
      call_(plan.call),
      positions_(plan.positions) {
  positions_.learned.reset();
}

absl::StatusOr<std::unique_ptr<AttendOperation>> AttendOperation::Make(AttendPlan plan,
                                                                       const AttentionModel& model,
                                                                       int64_t max_response_bytes,
                                                                       ByteBudget::Share memory) {
  std::unique_ptr<AttendOperation> operation(new AttendOperation(plan, std::move(memory)));
  if (plan.multi_head.has_value()) {
    ATTENDANT_RETURN_IF_ERROR(operation->PackModule(*plan.multi_head));
  }
  ATTENDANT_RETURN_IF_ERROR(operation->Measure(plan, model, max_response_bytes));
  operation->CopyTensors(plan);
  return operation;
}

absl::Status AttendOperation::PackModule(const MultiHeadPlan& plan) {
  const auto storage = std::make_shared<std::vector<std::vector<float>>>();
  ModuleWeights weights;
  weights.storage = storage;
  MultiHeadWeights& to = weights.attention;
  LinearWeights* const linears[] = {&to.query, &to.key, &to.value, &to.attention_output};
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    if (!plan.tensors[i].has_value()) continue;
    const WireTensor& tensor = *plan.tensors[i];
    const float* values = storage->emplace_back(CopyFloats(tensor)).data();
    LinearWeights& linear = *linears[i % std::size(linears)];
    if (tensor.rank() == 1) {
      linear.bias = {values, {tensor.count}};
    } else {
      linear.weight = {values, {tensor.dim(0), tensor.dim(1)}};
    }
  }
  auto module = attention::MakeModule(plan.config, std::move(weights), call_.dtype, call_.isa);
  if (!module.ok()) return InMultiHead(module.status());
  module_ = *std::move(module);
  call_.module = module_.get();
  return absl::OkStatus();
}

absl::Status AttendOperation::Measure(const AttendPlan& plan, const AttentionModel& model,
                                      int64_t max_response_bytes) {
  ATTENDANT_ASSIGN_OR_RETURN(cost_, attention::Measure(call_, model.threads));
  cost_.operations += PositionOperations(plan);
  int64_t scratch_bytes = cost_.scratch_bytes;
  if (positions_.sinusoidal) {  // its table is as long as the longest sequence
    const int64_t width = std::max({call_.query.dim, call_.key.dim, call_.value.dim});
    scratch_bytes += std::max(call_.queries.max_len(), call_.keys.max_len()) * width *
                     static_cast<int64_t>(sizeof(float));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckAttendLimit("bytes for its answer as f32", response_bytes(),
                                             max_response_bytes, "--max_response_bytes"));
  ATTENDANT_RETURN_IF_ERROR(CheckAttendLimit("bytes of scratch memory", scratch_bytes,
                                             model.limits.max_bytes, "--max_attention_bytes"));
  return CheckAttendLimit("multiply-adds", cost_.operations, model.limits.max_operations,
                          "--max_attention_operations");
}

void AttendOperation::CopyTensors(const AttendPlan& plan) {
  query_ = CopyOperand(plan.query, call_.dtype);
  call_.query.values = query_.data();
  if (plan.own_key) key_ = CopyOperand(plan.key, call_.dtype);
  call_.key.values = plan.own_key ? key_.data() : call_.query.values;
  if (plan.own_value) value_ = CopyOperand(plan.value, call_.dtype);
  call_.value.values = plan.own_value ? value_.data() : call_.key.values;
  if (plan.mask.has_value()) {
    mask_ = CopyMask(*plan.mask, call_.mask.tensor.type);
    call_.mask.tensor.values = mask_.data();
  }
  if (plan.key_mask.has_value()) {
    key_mask_.assign(plan.key_mask->bytes.begin(), plan.key_mask->bytes.end());
    call_.mask.keys = {key_mask_.data(), {plan.key_mask->count}};
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const float* values =
        parameter_values_.emplace_back(CopyFloats(plan.parameter_tensors[i])).data();
    parameters_[i].values = {values, parameters_[i].values.dims()};
  }
  if (plan.positions.learned.has_value()) learned_positions_ = CopyFloats(*plan.positions.learned);
}

absl::Status AttendOperation::AddTable(const PositionedRows& rows, ThreadPool& pool) const {
  const int64_t dim = rows.rows.dim;
  if (!learned_positions_.empty()) {
    const int64_t count = static_cast<int64_t>(learned_positions_.size()) / dim;
    return attention::AddPositions({learned_positions_.data(), {count, dim}}, rows, pool);
  }
  const int64_t count = rows.sequences.max_len();
  std::vector<float> table(static_cast<size_t>(count * dim));
  attention::FillSinusoidal(count, dim, positions_.base, table.data());
  return attention::AddPositions({table.data(), {count, dim}}, rows, pool);
}

absl::Status AttendOperation::AddPositions(ThreadPool& pool) {
  const bool added = has_added_positions();
  const bool to_query_and_key = added || positions_.rotary.has_value();
  const bool to_value = added && positions_.to_value;
  const auto add = [&](bool wanted, const InputRows& operand, const Sequences& sequences,
                       Buffer& values) {
    if (!wanted || values.empty()) return absl::OkStatus();
    const PositionedRows rows = Positioned(operand, sequences, call_.dtype, values);
    return positions_.rotary.has_value() ? attention::Rotate(*positions_.rotary, rows, pool)
                                         : AddTable(rows, pool);
  };
  ATTENDANT_RETURN_IF_ERROR(add(to_query_and_key, call_.query, call_.queries, query_));
  ATTENDANT_RETURN_IF_ERROR(add(to_query_and_key, call_.key, call_.keys, key_));
  return add(to_value, call_.value, call_.keys, value_);
}

absl::Status AttendOperation::Run(ThreadPool& pool) {
  ATTENDANT_RETURN_IF_ERROR(AddPositions(pool));
  // An arena hands out whole multiples of its alignment.
  Arena arena(cost_.scratch_bytes + Arena::kAlignment);
  std::byte* const scratch = arena.Allocate<std::byte>(cost_.scratch_bytes);
  out_.resize(static_cast<size_t>(cost_.out_bytes));
  weights_.resize(static_cast<size_t>(cost_.weights_bytes) / sizeof(float));
  const int64_t seq = call_.queries.seq();
  const attention::Outputs outputs{
      .out =
          with_heads_ && !call_.queries.packed()
              ? attention::OutputRows::HeadsFirst(out_.data(), cost_.out_heads, cost_.out_dim, seq)
              : attention::OutputRows::TokensFirst(out_.data(), cost_.out_heads, cost_.out_dim,
                                                   seq),
      .attention_weights = weights_.empty() ? nullptr : weights_.data()};
  return attention::RunMeasured(call_, cost_, pool,
                                {scratch, static_cast<size_t>(cost_.scratch_bytes)}, outputs);
}

int64_t AttendOperation::response_bytes() const {
  constexpr auto kF32Bytes = static_cast<int64_t>(sizeof(float));
  return cost_.out_bytes / attention::ValueBytes(call_.dtype) * kF32Bytes + cost_.weights_bytes;
}

std::vector<int64_t> AttendOperation::out_shape() const {
  const Sequences& queries = call_.queries;
  const int64_t heads = cost_.out_heads;
  const int64_t dim = cost_.out_dim;
  if (queries.packed() && with_heads_) return {queries.tokens(), heads, dim};
  if (queries.packed()) return {queries.tokens(), dim};
  if (with_heads_) return {queries.batch(), heads, queries.seq(), dim};
  return {queries.batch(), queries.seq(), dim};
}

std::vector<int64_t> AttendOperation::weights_shape() const {
  const Sequences& queries = call_.queries;
  const auto count = cost_.weights_bytes / static_cast<int64_t>(sizeof(float));
  if (queries.packed()) return {count};
  const int64_t heads = cost_.weights_heads;
  const int64_t columns = count / (queries.batch() * heads * queries.seq());
  if (score_heads_ && call_.need_weights == attention::WeightsWanted::kPerHead) {
    return {queries.batch(), heads, queries.seq(), columns};
  }
  return {queries.batch(), queries.seq(), columns};
}

}  // namespace attendant
