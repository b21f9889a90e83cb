// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/read_tensor.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/io/tensor_store.h"

namespace attendant {

absl::StatusOr<const float*> ReadTensor(TensorStore& store, const std::string& name,
                                        std::span<const int64_t> dims, absl::string_view source) {
  const StoredTensor* tensor = store.Find(name);
  if (tensor == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor `", name, "` is missing, expected shape [", absl::StrJoin(dims, ", "), "]"));
  }
  if (!std::equal(dims.begin(), dims.end(), tensor->dims.begin(), tensor->dims.end())) {
    return absl::InvalidArgumentError(absl::StrCat("tensor `", name, "` has shape [",
                                                   absl::StrJoin(tensor->dims, ", "), "], ", source,
                                                   " [", absl::StrJoin(dims, ", "), "]"));
  }
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor `", name, "` has shape [", absl::StrJoin(dims, ", "), "], which holds no value"));
  }
  return store.Floats(*tensor);
}

NormSuffixes FindNormSuffixes(const TensorStore& store, absl::string_view norm) {
  const auto take_older = [&](absl::string_view older, absl::string_view& suffix) {
    const auto has = [&](absl::string_view end) {
      return store.Find(absl::StrCat(norm, end)) != nullptr;
    };
    if (!has(suffix) && has(older)) suffix = older;
  };
  NormSuffixes suffixes;
  take_older(".gamma", suffixes.gamma);
  take_older(".beta", suffixes.beta);
  return suffixes;
}

}  // namespace attendant
