// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/shape.h"

namespace attendant {

// INVALID_ARGUMENT when the tensor is missing, or, with both shapes, when it has another.
template <size_t rank>
absl::Status CheckTensorShape(const std::string& name,
                              const TensorView<const float, static_cast<int>(rank)>& tensor,
                              const std::array<int64_t, rank>& expected) {
  if (tensor.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", name, " is missing"));
  }
  if (tensor.dims() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", name, " has shape [", absl::StrJoin(tensor.dims(), ", "),
                   "], the configuration asks for [", absl::StrJoin(expected, ", "), "]"));
}

}  // namespace attendant
