// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul/packed_linear.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "kernels/core/check.h"

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

// A weight is an outlier beyond so many times the root mean square of its output's weights: its
// step would round most of the others to nothing. 8 to 16 give the same accuracy.
constexpr float kOutlierRatio = 12;

// The largest outliers of `weight` [outputs, inputs].
std::vector<OutlierWeight> FindOutliers(TensorView<const float, 2> weight) {
  struct Candidate {
    OutlierWeight outlier;
    float ratio;  // squared
  };
  std::vector<Candidate> candidates;
  const int64_t inputs = weight.dim(1);
  for (int64_t j = 0; j < weight.dim(0); ++j) {
    const float* row = weight.row(j);
    float square = 0;
    for (int64_t i = 0; i < inputs; ++i) square += row[i] * row[i];
    const float mean_square = square / static_cast<float>(inputs);
    for (int64_t i = 0; i < inputs; ++i) {
      const float ratio = row[i] * row[i] / mean_square;
      if (ratio > kOutlierRatio * kOutlierRatio) candidates.push_back({{i, j, row[i]}, ratio});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.ratio > b.ratio; });
  if (candidates.size() > kMaxOutliers) candidates.resize(kMaxOutliers);
  std::vector<OutlierWeight> outliers;
  for (const Candidate& candidate : candidates) outliers.push_back(candidate.outlier);
  return outliers;
}

// Quantizes one output's weights, [inputs].
void QuantizeColumn(const std::vector<float>& weights, int8_t* values, PackedLinear& packed) {
  float largest = 0;
  for (float weight : weights) largest = std::max(largest, std::abs(weight));
  const float scale = largest > kLeastInt8Range ? largest / 127 : 1.0f;
  int32_t sum = 0;
  for (float weight : weights) {
    *values = static_cast<int8_t>(std::lrint(weight / scale));
    sum += *values++;
  }
  packed.column_scales.push_back(scale);
  packed.column_offsets.push_back(scale * static_cast<float>(sum));
}

void QuantizeAndPack(const Matmul& matmul, TensorView<const float, 2> weight, void* storage,
                     PackedLinear& packed) {
  const int64_t inputs = weight.dim(1);
  const Scratch<int8_t> values(weight.size());
  for (int64_t j = 0; j < weight.dim(0); ++j) {
    std::vector<float> column(weight.row(j), weight.row(j) + inputs);
    for (const OutlierWeight& outlier : packed.outliers) {
      if (outlier.output == j) column[static_cast<size_t>(outlier.input)] = 0;
    }
    for (size_t i = 0; i < packed.smoothing_factors.size(); ++i) {
      column[i] /= packed.smoothing_factors[i];
    }
    QuantizeColumn(column, values.data() + j * inputs, packed);
  }
  matmul.Pack(TensorView<const int8_t, 2>(values.data(), weight.dims()), storage);
}

// Where the outputs of a part go, of which `first` outputs lie in the parts before it: calls
// place(from, count, to) for its outputs `from` on. A gate and up take turns.
template <typename Place>
void ForEachTurn(const Matmul& matmul, const LinearWeights& part, int64_t first, Place place) {
  const int64_t outputs = part.weight.dim(0), turn = matmul.gate_columns();
  if (matmul.options().output != MatmulOutput::kGated) return place(0, outputs, first);
  ATTENDANT_CHECK(2 * outputs == matmul.options().n);
  const int64_t offset = first == 0 ? 0 : turn;
  for (int64_t from = 0; from < outputs; from += turn) place(from, turn, 2 * from + offset);
}

}  // namespace

int64_t PackedLinear::bytes() const {
  const size_t floats =
      bias.size() + column_scales.size() + column_offsets.size() + smoothing_factors.size();
  return weight_bytes +
         static_cast<int64_t>(floats * sizeof(float) + outliers.size() * sizeof(OutlierWeight));
}

PackedLinear PackLinear(const Matmul& matmul, std::initializer_list<const LinearWeights*> parts,
                        std::byte* storage, const QuantizationOptions& quantization) {
  PackedLinear packed;
  const int64_t n = matmul.options().n, k = matmul.options().k;
  const Scratch<float> joined(parts.size() == 1 ? 0 : n * k);  // [outputs, inputs]
  packed.bias.resize(static_cast<size_t>(n));
  int64_t first = 0;
  for (const LinearWeights* part : parts) {
    ForEachTurn(matmul, *part, first, [&](int64_t from, int64_t count, int64_t to) {
      for (int64_t i = 0; i < count; ++i)
        packed.bias[static_cast<size_t>(to + i)] = BiasAt(part->bias, from + i);
      if (parts.size() > 1) std::copy_n(part->weight.row(from), count * k, joined.data() + to * k);
    });
    first += part->weight.dim(0);
  }
  const float* values = parts.size() == 1 ? (*parts.begin())->weight.data() : joined.data();
  const TensorView<const float, 2> weight(values, {n, k});
  packed.weight = storage;
  packed.weight_bytes = matmul.packed_bytes();
  if (matmul.options().dtype == DType::kInt8) {
    packed.smoothing_factors = quantization.smoothing_factors;
    if (quantization.decompose_outliers) packed.outliers = FindOutliers(weight);
    QuantizeAndPack(matmul, weight, storage, packed);
  } else {
    matmul.Pack(weight, storage);
  }
  return packed;
}

PackedLinear PackTransposed(const Matmul& matmul, TensorView<const float, 2> weight,
                            std::byte* storage, const QuantizationOptions& quantization) {
  const int64_t k = weight.dim(0), n = weight.dim(1);
  const Scratch<float> turned(k * n);
  for (int64_t i = 0; i < k; ++i) {
    const float* row = weight.row(i);
    for (int64_t j = 0; j < n; ++j) turned.data()[j * k + i] = row[j];
  }
  const LinearWeights linear{.weight = {turned.data(), {n, k}}, .bias = {}};
  return PackLinear(matmul, {&linear}, storage, quantization);
}

PackedLinear PackLinear(const Matmul& matmul, std::initializer_list<const LinearWeights*> parts,
                        Arena& arena, const QuantizationOptions& quantization) {
  return PackLinear(matmul, parts, arena.Allocate<std::byte>(matmul.packed_bytes()), quantization);
}

}  // namespace attendant::cpu
