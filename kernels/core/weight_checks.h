// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/core/shape.h"

// Checks that configurations and weights of encoders and of attention modules share. Errors are
// INVALID_ARGUMENT and name the field or tensor, its value or shape, and the limit.
namespace attendant {

// Far above any model there is, and so low that a product of two stays below 2^62.
inline constexpr int64_t kMaxWidth = 1 << 20;
inline constexpr int64_t kMaxRows = 1 << 28;

struct DimBound {
  const char* field;
  int64_t value;
  int64_t limit;
};

// Every value is from 1 to its limit.
absl::Status CheckBounds(std::initializer_list<DimBound> bounds);
absl::Status CheckHeadsDivide(int64_t hidden, int64_t heads);
absl::Status CheckEpsilon(float layer_norm_epsilon);  // in (0, 1)
absl::Status CheckLayerCount(size_t weights, int64_t layers);

// A tensor of [rows, columns] has fewer than 2^31 values.
absl::Status CheckWeightSize(const char* name, int64_t rows, int64_t columns);

// Keeps the first tensor that is missing or has another shape than expected.
class ShapeChecker {
 public:
  explicit ShapeChecker(Biases biases) : biases_(biases) {}

  template <size_t rank>
  void Check(const std::string& name, const TensorView<const float, static_cast<int>(rank)>& tensor,
             const std::array<int64_t, rank>& expected) {
    if (tensor.empty() || tensor.dims() != expected) {
      Refuse(name, tensor.empty(), tensor.dims(), expected);
    }
  }
  void Check(const std::string& name, const LinearWeights& linear, int64_t outputs, int64_t inputs);
  void Check(const std::string& name, const LayerNormWeights& norm, int64_t hidden);
  void Check(const std::string& prefix, const MultiHeadWeights& weights, int64_t hidden,
             int64_t key_dim, int64_t value_dim);

  const absl::Status& status() const { return status_; }

 private:
  void CheckBias(const std::string& name, const TensorView<const float, 1>& bias, int64_t size);
  void Refuse(const std::string& name, bool missing, std::span<const int64_t> dims,
              std::span<const int64_t> expected);

  const Biases biases_;
  absl::Status status_;
};

}  // namespace attendant
