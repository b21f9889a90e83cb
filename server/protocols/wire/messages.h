// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/encoder.pb.h"
#include "server/models/registry/model_status.h"
#include "server/requests/formats/number_format.h"
#include "server/requests/request_run.h"

// Messages that several services of attendant.v1 share, to and from the server's own words.
namespace attendant {

v1::ModelState StateToProto(const ModelStatus& status);
void ToProto(const RequestTimes& times, v1::Timings& timings);

// "[2, 3]"
std::string ShapeText(std::span<const int64_t> shape);

absl::Status UnknownEnum(absl::string_view field, int value);

// DTYPE_UNSPECIFIED is F32. INVALID_ARGUMENT, naming `field`, for values that are not numbers of a
// NumberFormat.
v1::DType ToProto(NumberFormat format);
absl::StatusOr<NumberFormat> FromProto(absl::string_view field, v1::DType dtype);

// A tensor whose shape, dtype and size agree. It views the message's `bytes`.
struct WireTensor {
  std::vector<int64_t> shape;  // every dim at least 1
  int64_t count = 0;           // values
  bool is_bool = false;
  NumberFormat format = NumberFormat::kF32;  // unless it is bool
  absl::string_view bytes;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t dim(int64_t index) const { return shape[static_cast<size_t>(index)]; }

  // `values` has room for `count`. REQUIRES: not bool.
  void ReadFloats(float* values) const {
    ReadValues(bytes, format, {values, static_cast<size_t>(count)});
  }
};

// INVALID_ARGUMENT naming `field`: no dims or more than `max_rank`, a dim below 1, an unknown
// dtype, or not as many bytes as shape and dtype say.
absl::StatusOr<WireTensor> ReadTensor(absl::string_view field, const v1::Tensor& tensor,
                                      int max_rank);
// The same, and INVALID_ARGUMENT for bool.
absl::StatusOr<WireTensor> ReadNumbers(absl::string_view field, const v1::Tensor& tensor,
                                       int max_rank);

// Sets dtype and shape, and reserves space for the values: append them to the returned string.
std::string& StartTensor(std::span<const int64_t> shape, NumberFormat format, v1::Tensor& tensor);

}  // namespace attendant
