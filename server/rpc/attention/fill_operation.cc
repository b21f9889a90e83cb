// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <span>

#include "kernels/core/check.h"
#include "kernels/core/half.h"
#include "server/rpc/attention/plan_parts.h"

namespace attendant {
namespace {

// What the plan has read once reads again: the message has not changed.
WireTensor ReadAgain(absl::string_view field, const v1::Tensor& tensor) {
  absl::StatusOr<WireTensor> read = ReadTensor(field, tensor, kMaxTensorRank);
  ATTENDANT_CHECK(read.ok());
  return *std::move(read);
}

Buffer ReadFloats(const WireTensor& tensor) {
  Buffer buffer(static_cast<size_t>(tensor.count) * sizeof(float));
  tensor.ReadFloats(reinterpret_cast<float*>(buffer.data()));
  return buffer;
}

Buffer ReadBytes(const WireTensor& tensor) {
  Buffer buffer(tensor.bytes.size());
  std::memcpy(buffer.data(), tensor.bytes.data(), buffer.size());
  return buffer;
}

// Piece by piece: values that are rounded to bf16 need no f32 copy of all of them.
Buffer ReadAsBf16(const WireTensor& tensor) {
  if (tensor.format == NumberFormat::kBf16) return ReadBytes(tensor);
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

Buffer ReadOperand(absl::string_view field, const v1::Tensor& tensor, DType dtype) {
  const WireTensor read = ReadAgain(field, tensor);
  return dtype == DType::kBf16 ? ReadAsBf16(read) : ReadFloats(read);
}

void FillMasks(const v1::AttendRequest& request, AttentionTask& task) {
  attention::Mask& mask = task.call.mask;
  if (mask.tensor.present()) {
    const WireTensor read = ReadAgain("mask", request.mask());
    task.mask =
        mask.tensor.type == attention::MaskTensor::Type::kF32 ? ReadFloats(read) : ReadBytes(read);
    mask.tensor.values = task.mask.data();
  }
  if (request.has_key_padding_mask()) {
    const std::string& bytes = request.key_padding_mask().data();
    task.key_mask.assign(bytes.begin(), bytes.end());
    mask.keys = {task.key_mask.data(), {static_cast<int64_t>(task.key_mask.size())}};
  }
}

void FillParameters(const v1::AttendRequest& request, AttentionTask& task) {
  size_t index = 0;
  for (const ParameterField& field : ParameterFields(request)) {
    const WireTensor read = ReadAgain(field.name, *field.tensor);
    std::vector<float>& values =
        task.parameter_values.emplace_back(static_cast<size_t>(read.count));
    read.ReadFloats(values.data());
    TensorView<const float, 2>& view = task.parameters[index++].values;
    view = {values.data(), view.dims()};
  }
}

}  // namespace

void FillTask(const v1::AttendRequest& request, AttentionTask& task) {
  attention::Call& call = task.call;
  task.query = ReadOperand("query", request.query(), call.dtype);
  call.query.values = task.query.data();
  call.key.values = call.query.values;
  if (OwnsKey(request)) {
    task.key = ReadOperand("key", request.key(), call.dtype);
    call.key.values = task.key.data();
  }
  call.value.values = call.key.values;
  if (OwnsValue(request, task.positions)) {
    task.value = ReadOperand("value", ValueSource(request), call.dtype);
    call.value.values = task.value.data();
  }
  FillMasks(request, task);
  FillParameters(request, task);
  if (!task.positions.is_learned) return;
  const WireTensor table = ReadAgain("added.learned", request.added().learned());
  task.positions.learned.resize(static_cast<size_t>(table.count));
  table.ReadFloats(task.positions.learned.data());
}

}  // namespace attendant
