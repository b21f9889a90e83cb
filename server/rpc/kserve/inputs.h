// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "inference/grpc_service.pb.h"
#include "kernels/core/quote.h"
#include "server/rpc/kserve/metadata.h"

namespace attendant {

// An input of a ModelInfer request whose name, datatype, shape and amount of data agree. Views the
// request.
struct InputTensor {
  absl::string_view name;
  int64_t batch = 0;
  int64_t width = 0;                 // values in a row
  int64_t value_bytes = 0;           // of integers; 0 for BYTES
  const std::string* raw = nullptr;  // null: the values are in `contents`
  const inference::InferTensorContents* contents = nullptr;
};

// By the place of their spec; what the request leaves out is empty.
using InputTensors = std::vector<std::optional<InputTensor>>;

// Checks every input of `request` alone and against the others and lays them out by `specs`.
// Allocates nothing that grows with a shape. A raw BYTES tensor's elements are yet to be counted.
absl::StatusOr<InputTensors> CheckInputs(const inference::ModelInferRequest& request,
                                         const std::vector<TensorSpec>& specs,
                                         const ServedModel& model);

template <typename... Parts>
absl::Status InputError(absl::string_view name, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("input ", Quote(name), " ", parts...));
}

}  // namespace attendant
