// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/mask.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "kernels/attention/values.h"

namespace attendant::attention {

const float MaskReader::kLeftOut = -std::numeric_limits<float>::infinity();

MaskReader::MaskReader(const Call& call, int64_t sequence, int64_t head)
    : mask_(call.mask), keys_(call.keys.len(sequence)) {
  if (mask_.keys.dim(0) != 0) key_mask_ = mask_.keys.data() + call.keys.start(sequence);
  if (!mask_.alibi_slopes.empty()) slope_ = mask_.alibi_slopes[static_cast<size_t>(head)];
  if (!mask_.tensor.present()) return;
  const auto& dims = mask_.tensor.dims;
  key_stride_ = dims[3] == 1 ? 0 : 1;
  query_stride_ = dims[2] == 1 ? 0 : dims[3];
  first_ =
      (head % dims[1]) * dims[2] * dims[3] + (sequence % dims[0]) * dims[1] * dims[2] * dims[3];
}

int64_t MaskReader::KeysBegin(int64_t query) const {
  if (mask_.window < 0 || query <= mask_.window) return 0;
  return std::min(query - mask_.window, keys_);
}

int64_t MaskReader::KeysEnd(int64_t query) const {
  int64_t end = keys_;
  if (mask_.causal) end = std::min(end, query + 1);
  if (mask_.window >= 0 && mask_.window < end - query - 1) end = query + mask_.window + 1;
  return end;
}

float MaskReader::TensorBias(int64_t query, int64_t key) const {
  if (!mask_.tensor.present()) return 0;
  const int64_t index = first_ + query * query_stride_ + key * key_stride_;
  switch (mask_.tensor.type) {
    case MaskTensor::Type::kBool:
      return static_cast<const uint8_t*>(mask_.tensor.values)[index] != 0 ? 0 : kLeftOut;
    case MaskTensor::Type::kF32:
      return static_cast<const float*>(mask_.tensor.values)[index];
    case MaskTensor::Type::kBf16:
      return FromBf16(static_cast<const uint16_t*>(mask_.tensor.values)[index]);
  }
  return 0;
}

// Loops without branches on the kind of mask: the compiler makes vectors of them.
template <typename Value, typename ToBias>
void MaskReader::TensorBiases(int64_t query, int64_t key_begin, int64_t count, ToBias to_bias,
                              float* bias) const {
  const Value* row = static_cast<const Value*>(mask_.tensor.values) + first_ +
                     query * query_stride_ + key_begin * key_stride_;
  if (key_stride_ == 0) {
    std::fill_n(bias, count, count > 0 ? to_bias(*row) : 0.0f);
  } else {
    for (int64_t j = 0; j < count; ++j) bias[j] = to_bias(row[j]);
  }
}

void MaskReader::KeyBiases(int64_t query, int64_t key_begin, int64_t count, float* bias) const {
  const auto of_bool = [](uint8_t value) { return value != 0 ? 0.0f : kLeftOut; };
  if (!mask_.tensor.present()) {
    std::fill_n(bias, count, 0.0f);
  } else if (mask_.tensor.type == MaskTensor::Type::kBool) {
    TensorBiases<uint8_t>(query, key_begin, count, of_bool, bias);
  } else if (mask_.tensor.type == MaskTensor::Type::kF32) {
    TensorBiases<float>(
        query, key_begin, count, [](float value) { return value; }, bias);
  } else {
    TensorBiases<uint16_t>(query, key_begin, count, FromBf16, bias);
  }
  if (key_mask_ != nullptr) {
    const uint8_t* key_mask = key_mask_ + key_begin;
    for (int64_t j = 0; j < count; ++j) bias[j] = key_mask[j] != 0 ? bias[j] : kLeftOut;
  }
  if (slope_ == 0) return;
  // 32 bits: baseline x86-64 has no vector conversion of 64.
  const auto first = static_cast<int32_t>(key_begin - query);
  for (int32_t j = 0; j < static_cast<int32_t>(count); ++j) {
    bias[j] -= slope_ * std::fabs(static_cast<float>(first + j));
  }
}

void MaskReader::Biases(int64_t query, std::span<const int64_t> keys, float* bias) const {
  const auto fill = [&](auto bias_of) {
    for (size_t j = 0; j < keys.size(); ++j) bias[j] = bias_of(keys[j]);
  };
  const int64_t row = first_ + query * query_stride_;
  const void* values = mask_.tensor.values;
  if (!mask_.tensor.present()) {
    fill([](int64_t) { return 0.0f; });
  } else if (mask_.tensor.type == MaskTensor::Type::kBool) {
    const auto* tensor = static_cast<const uint8_t*>(values) + row;
    fill([&](int64_t key) { return tensor[key * key_stride_] != 0 ? 0.0f : kLeftOut; });
  } else if (mask_.tensor.type == MaskTensor::Type::kF32) {
    const auto* tensor = static_cast<const float*>(values) + row;
    fill([&](int64_t key) { return tensor[key * key_stride_]; });
  } else {
    const auto* tensor = static_cast<const uint16_t*>(values) + row;
    fill([&](int64_t key) { return FromBf16(tensor[key * key_stride_]); });
  }
  const int64_t begin = KeysBegin(query), end = KeysEnd(query);
  for (size_t j = 0; j < keys.size(); ++j) {
    const int64_t key = keys[j];
    const bool seen = key >= begin && key < end && (key_mask_ == nullptr || key_mask_[key] != 0);
    bias[j] = seen ? bias[j] - slope_ * static_cast<float>(std::abs(key - query)) : kLeftOut;
  }
}

}  // namespace attendant::attention
