// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "kernels/attention/attention.h"

namespace attendant::attention {

// Reads all that a call's mask says, for one sequence and head. REQUIRES: CheckCall accepted the
// call, which must outlive the reader. Cheap to make.
class MaskReader {
 public:
  MaskReader(const Call& call, int64_t sequence, int64_t head);

  // The value that is added to the score of (query, key): -inf when the key is left out.
  float Bias(int64_t query, int64_t key) const {
    if (!Allowed(query, key)) return kLeftOut;
    const auto distance = static_cast<float>(query < key ? key - query : query - key);
    return TensorBias(query, key) - slope_ * distance;
  }

  // The keys that causal and window leave for a query: [KeysBegin, KeysEnd), perhaps empty.
  int64_t KeysBegin(int64_t query) const;
  int64_t KeysEnd(int64_t query) const;

  // bias[j] = Bias(query, key_begin + j) for j in [0, count), but without causal and window, which
  // KeysBegin and KeysEnd say.
  void KeyBiases(int64_t query, int64_t key_begin, int64_t count, float* bias) const;

  // bias[j] = Bias(query, keys[j]).
  void Biases(int64_t query, std::span<const int64_t> keys, float* bias) const;

  // The offset in elements of the sequence and head in the mask tensor.
  int64_t first() const { return first_; }

 private:
  static const float kLeftOut;

  bool Allowed(int64_t query, int64_t key) const {
    return (key_mask_ == nullptr || key_mask_[key] != 0) && key >= KeysBegin(query) &&
           key < KeysEnd(query);
  }
  float TensorBias(int64_t query, int64_t key) const;
  template <typename Value, typename ToBias>
  void TensorBiases(int64_t query, int64_t key_begin, int64_t count, ToBias to_bias,
                    float* bias) const;

  const Mask& mask_;
  int64_t keys_;
  const uint8_t* key_mask_ = nullptr;  // of the sequence
  int64_t first_ = 0;                  // of the sequence and head in the mask tensor
  int64_t query_stride_ = 0;
  int64_t key_stride_ = 0;
  float slope_ = 0;
};

}  // namespace attendant::attention
