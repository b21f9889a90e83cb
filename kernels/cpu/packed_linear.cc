// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/packed_linear.h"

#include <algorithm>
#include <cmath>

namespace attendant::cpu {
namespace {

// Quantizes output column j, row j of `weight` [outputs, inputs], into `values`.
void QuantizeColumn(TensorView<const float, 2> weight, int64_t j, int8_t* values,
                    PackedLinear& packed) {
  const float* row = weight.row(j);
  const int64_t inputs = weight.dim(1);
  float largest = 0;
  for (int64_t i = 0; i < inputs; ++i) largest = std::max(largest, std::abs(row[i]));
  const float scale = largest > 0 ? largest / 127 : 1.0f;
  int32_t sum = 0;
  for (int64_t i = 0; i < inputs; ++i) {
    values[i] = static_cast<int8_t>(std::lrint(row[i] / scale));
    sum += values[i];
  }
  packed.column_sums.push_back(sum);
  packed.column_scales.push_back(scale);
}

dnnl::memory QuantizeAndPack(const Matmul& matmul, TensorView<const float, 2> weight, void* storage,
                             PackedLinear& packed) {
  std::vector<int8_t> values(static_cast<size_t>(weight.size()));
  for (int64_t j = 0; j < weight.dim(0); ++j) {
    QuantizeColumn(weight, j, values.data() + j * weight.dim(1), packed);
  }
  return matmul.Pack(TensorView<const int8_t, 2>(values.data(), weight.dims()), storage);
}

}  // namespace

int64_t PackedLinear::bytes() const {
  return static_cast<int64_t>(weight.get_desc().get_size() + bias.size() * sizeof(float) +
                              column_sums.size() * sizeof(int32_t) +
                              column_scales.size() * sizeof(float));
}

PackedLinear PackLinear(const Matmul& matmul, std::initializer_list<const LinearWeights*> parts,
                        Arena& arena) {
  PackedLinear packed;
  std::vector<float> joined;  // [outputs, inputs]
  for (const LinearWeights* part : parts) {
    packed.bias.insert(packed.bias.end(), part->bias.data(), part->bias.data() + part->bias.size());
    if (parts.size() == 1) break;
    joined.insert(joined.end(), part->weight.data(), part->weight.data() + part->weight.size());
  }
  const float* values = parts.size() == 1 ? (*parts.begin())->weight.data() : joined.data();
  const TensorView<const float, 2> weight(values, {matmul.options().n, matmul.options().k});
  void* storage = arena.Allocate<std::byte>(matmul.packed_bytes());
  packed.weight = matmul.options().dtype == DType::kInt8
                      ? QuantizeAndPack(matmul, weight, storage, packed)
                      : matmul.Pack(weight, storage);
  return packed;
}

}  // namespace attendant::cpu
