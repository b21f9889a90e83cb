// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

class TensorStore;

// A tensor's values, as TensorStore::Floats gives them. INVALID_ARGUMENT, naming the tensor and its
// shapes, when it is missing, its shape is not `dims`, or it holds no value; `source` says where
// `dims` come from: "the config makes it".
absl::StatusOr<const float*> ReadTensor(TensorStore& store, const std::string& name,
                                        std::span<const int64_t> dims, absl::string_view source);

// The ends of the names of a norm's two tensors.
struct NormSuffixes {
  absl::string_view gamma = ".weight";
  absl::string_view beta = ".bias";
};

// The suffixes of `norm` in `store`: .weight and .bias, or .gamma and .beta where only these are
// stored, as in Google's BERT checkpoints.
NormSuffixes FindNormSuffixes(const TensorStore& store, absl::string_view norm);

}  // namespace attendant
