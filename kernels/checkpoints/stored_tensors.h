// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/checkpoints/families/family.h"
#include "kernels/checkpoints/read_tensor.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/tensor_store.h"

namespace attendant {

// Reads an encoder's tables, linear layers and norms from a store, by names without the prefix that
// all have there. INVALID_ARGUMENT as ReadTensor, or for a bias that the family does not have.
class StoredTensors {
 public:
  using Parts = std::initializer_list<LinearWeights*>;

  // The three must outlive it, and what it reads points into the last two. `made` holds values that
  // are not stored as they are computed with.
  StoredTensors(const FamilyConfig& family, TensorStore& store,
                std::deque<std::vector<float>>& made)
      : family_(family), store_(store), made_(made) {}

  void SetPrefix(absl::string_view prefix) { prefix_ = std::string(prefix); }
  bool Has(absl::string_view name) const {
    return store_.Find(absl::StrCat(prefix_, name)) != nullptr;
  }

  template <int rank>
  absl::Status LoadTensor(const std::string& name, std::array<int64_t, rank> dims,
                          TensorView<const float, rank>& to) {
    ATTENDANT_ASSIGN_OR_RETURN(const float* values,
                               ReadTensor(store_, prefix_ + name, dims, "the config makes it"));
    to = TensorView<const float, rank>(values, dims);
    return absl::OkStatus();
  }
  absl::Status LoadTable(absl::string_view name, std::array<int64_t, 2> dims,
                         TensorView<const float, 2>& to) {
    return LoadTensor<2>(absl::StrCat(name, ".weight"), dims, to);
  }
  // The rows of one stored tensor, in the order of `parts`, [outputs, inputs] each.
  absl::Status LoadLinear(const std::string& name, Parts parts, int64_t outputs, int64_t inputs,
                          bool has_bias);
  absl::Status LoadNorm(const std::string& name, int64_t size, LayerNormWeights& norm);
  // Refuses one that is stored although the config says that there is none.
  absl::Status LoadBias(const std::string& name, int64_t size, bool has_bias,
                        TensorView<const float, 1>& to);
  // Zeros.
  float* MakeTensor(int64_t size) { return made_.emplace_back(static_cast<size_t>(size)).data(); }

 private:
  const FamilyConfig& family_;
  TensorStore& store_;
  std::deque<std::vector<float>>& made_;
  std::string prefix_;
};

}  // namespace attendant
