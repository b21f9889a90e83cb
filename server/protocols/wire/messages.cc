// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/wire/messages.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

// `size` / value_bytes as a product of `shape`; -1 when it is not. By division: the product may not
// fit in 64 bits. REQUIRES: no dim below 1.
int64_t CountValues(std::span<const int64_t> shape, int64_t size, int64_t value_bytes) {
  if (size % value_bytes != 0) return -1;
  const int64_t count = size / value_bytes;
  int64_t rest = count;
  for (int64_t dim : shape) {
    if (rest % dim != 0) return -1;
    rest /= dim;
  }
  return rest == 1 ? count : -1;
}

absl::Status CheckDims(absl::string_view field, const std::vector<int64_t>& shape) {
  for (int64_t dim : shape) {
    if (dim >= 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": shape is ", ShapeText(shape), ", every dim must be at least 1"));
  }
  return absl::OkStatus();
}

}  // namespace

v1::ModelState StateToProto(const ModelStatus& status) {
  switch (status.state) {
    case ModelState::kLoading:
      return v1::MODEL_STATE_LOADING;
    case ModelState::kReady:
      return v1::MODEL_STATE_READY;
    case ModelState::kIdleFailed:
    case ModelState::kFailed:
    case ModelState::kLost:
      return v1::MODEL_STATE_FAILED;
    case ModelState::kUnloading:
    case ModelState::kDraining:
      return v1::MODEL_STATE_DRAINING;
    case ModelState::kUnloaded:
      return v1::MODEL_STATE_UNLOADED;
    case ModelState::kIdle:
      return v1::MODEL_STATE_IDLE;
  }
  return v1::MODEL_STATE_UNSPECIFIED;
}

void ToProto(const RequestTimes& times, v1::Timings& timings) {
  timings.set_tokenize_us(absl::ToInt64Microseconds(times.decode));
  timings.set_queue_us(absl::ToInt64Microseconds(times.queue));
  timings.set_compute_us(absl::ToInt64Microseconds(times.compute));
  timings.set_total_us(absl::ToInt64Microseconds(times.total()));
}

std::string ShapeText(std::span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status UnknownEnum(absl::string_view field, int value) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", which is not one of its values"));
}

v1::DType ToProto(NumberFormat format) {
  switch (format) {
    case NumberFormat::kF32:
      return v1::DTYPE_F32;
    case NumberFormat::kBf16:
      return v1::DTYPE_BF16;
    case NumberFormat::kF16:
      return v1::DTYPE_F16;
  }
  return v1::DTYPE_UNSPECIFIED;
}

absl::StatusOr<NumberFormat> FromProto(absl::string_view field, v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_UNSPECIFIED:
    case v1::DTYPE_F32:
      return NumberFormat::kF32;
    case v1::DTYPE_BF16:
      return NumberFormat::kBf16;
    case v1::DTYPE_F16:
      return NumberFormat::kF16;
    case v1::DTYPE_BOOL:
      return absl::InvalidArgumentError(absl::StrCat(field, " cannot be BOOL"));
    case v1::DTYPE_INT8:
    case v1::DTYPE_BINARY:
    case v1::DTYPE_UBINARY:
      return absl::InvalidArgumentError(
          absl::StrCat(field, " cannot be INT8, BINARY or UBINARY: outputs.pooled.dtype can"));
    default:
      return UnknownEnum(field, dtype);
  }
}

absl::StatusOr<WireTensor> ReadTensor(absl::string_view field, const v1::Tensor& tensor,
                                      int max_rank) {
  // Before it is copied: the wire holds as many dims as a client likes.
  const int rank = tensor.shape_size();
  if (rank < 1 || rank > max_rank) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " has ", rank, " dims, it must have 1 to ", max_rank));
  }
  WireTensor read{.shape = {tensor.shape().begin(), tensor.shape().end()},
                  .is_bool = tensor.dtype() == v1::DTYPE_BOOL,
                  .bytes = tensor.data()};
  ATTENDANT_RETURN_IF_ERROR(CheckDims(field, read.shape));
  int64_t value_bytes = 1;
  if (!read.is_bool) {
    ATTENDANT_ASSIGN_OR_RETURN(read.format,
                               FromProto(absl::StrCat(field, ".dtype"), tensor.dtype()));
    value_bytes = BytesPerValue(read.format);
  }
  const int64_t size = static_cast<int64_t>(tensor.data().size());
  read.count = CountValues(read.shape, size, value_bytes);
  if (read.count > 0) return read;
  return absl::InvalidArgumentError(absl::StrCat(field, ": shape is ", ShapeText(read.shape),
                                                 " of ", value_bytes, " bytes a value, data has ",
                                                 size, " bytes"));
}

absl::StatusOr<WireTensor> ReadNumbers(absl::string_view field, const v1::Tensor& tensor,
                                       int max_rank) {
  absl::StatusOr<WireTensor> read = ReadTensor(field, tensor, max_rank);
  if (read.ok() && read->is_bool) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".dtype is BOOL, it must be F32, BF16 or F16"));
  }
  return read;
}

std::string& StartTensor(std::span<const int64_t> shape, NumberFormat format, v1::Tensor& tensor) {
  tensor.set_dtype(ToProto(format));
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  int64_t bytes = BytesPerValue(format);
  for (int64_t dim : shape) bytes *= dim;
  tensor.mutable_data()->reserve(static_cast<size_t>(bytes));
  return *tensor.mutable_data();
}

}  // namespace attendant
