// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/packed_linear.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <new>

namespace attendant::cpu {
namespace {

// Memory that the kernel takes back at once: megabytes freed by a thread that ends would stay in
// glibc's arena of that thread, where malloc_trim does not look (14 MiB of BERT-base on two
// threads).
template <typename T>
class Scratch {
 public:
  explicit Scratch(int64_t values) : bytes_(static_cast<size_t>(values) * sizeof(T)) {
    if (bytes_ == 0) return;
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(memory);
  }
  ~Scratch() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() const { return data_; }

 private:
  size_t bytes_;
  T* data_ = nullptr;
};

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
  const Scratch<int8_t> values(weight.size());
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

PackedLinear PackLinear(const Matmul& matmul, std::span<const LinearWeights* const> parts,
                        std::byte* storage) {
  PackedLinear packed;
  const int64_t n = matmul.options().n, k = matmul.options().k;
  const Scratch<float> joined(parts.size() == 1 ? 0 : n * k);  // [outputs, inputs]
  float* next = joined.data();
  for (const LinearWeights* part : parts) {
    packed.bias.insert(packed.bias.end(), part->bias.data(), part->bias.data() + part->bias.size());
    if (parts.size() == 1) break;
    next = std::copy_n(part->weight.data(), part->weight.size(), next);
  }
  const float* values = parts.size() == 1 ? parts.front()->weight.data() : joined.data();
  const TensorView<const float, 2> weight(values, {n, k});
  packed.weight = matmul.options().dtype == DType::kInt8
                      ? QuantizeAndPack(matmul, weight, storage, packed)
                      : matmul.Pack(weight, storage);
  return packed;
}

PackedLinear PackLinear(const Matmul& matmul, std::initializer_list<const LinearWeights*> parts,
                        Arena& arena) {
  auto* storage = arena.Allocate<std::byte>(matmul.packed_bytes());
  return PackLinear(matmul, {parts.begin(), parts.size()}, storage);
}

}  // namespace attendant::cpu
