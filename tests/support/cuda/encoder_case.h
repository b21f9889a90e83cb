// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/cuda_interface.h"

// Encoders and batches for whatever speaks the CUDA back end's C interface, and what is right for
// them. Needs nothing but the standard library, so that it builds on a bare GPU machine.
namespace attendant::cuda_test {

AttendantCudaConfig SmallConfig();  // 2 layers, 2 heads of 32, in a millisecond on an emulation

// The parts of an encoder besides its configuration; these are BERT's.
struct Parts {
  bool biases = true;
  bool embedding_norm = true;
  bool first_attention_norm = true;
  bool final_norm = false;
  bool query_key_norm = false;
  bool whole_query_key_norm = false;
  bool second_attention_norm = false;
  bool shared_layers = false;  // all have the first one's tensors
  bool learned_positions = true;
  double rotary_base = 0;        // 0: no rotary positions
  double local_rotary_base = 0;  // of local layers
  bool score_by_distance = false;
  uint32_t local_layers = 0;  // bit i: layer i
};

// Random weights of an encoder that behaves like a trained one: norms near 1, scores of a few.
class RandomEncoder {
 public:
  RandomEncoder(const AttendantCudaConfig& config, uint32_t seed, const Parts& parts = {});
  RandomEncoder(const RandomEncoder&) = delete;
  RandomEncoder& operator=(const RandomEncoder&) = delete;

  const AttendantCudaConfig& config() const { return config_; }
  const AttendantCudaWeights& weights() const { return weights_; }

 private:
  const float* Take(int64_t count, float spread, float middle = 0);
  AttendantCudaLinear TakeLinear(int64_t outputs, int64_t inputs);
  AttendantCudaNorm TakeNorm(int64_t width);
  AttendantCudaLayer TakeLayer(bool first);
  const float* TakeAngles(double base);

  AttendantCudaConfig config_;
  Parts parts_;
  uint64_t random_;
  std::vector<std::vector<float>> tensors_;
  std::vector<AttendantCudaLayer> layers_;
  AttendantCudaWeights weights_{};
};

// The holes in sequences of odd seeds.
struct Holes {
  bool gaps = false;        // positions jump here and there, as a mask leaves them
  bool unattended = false;  // no token attends to the last few
};

// Sequences laid end to end, with random tokens; a sequence's depend on its seed alone.
class PackedSequences {
 public:
  void Append(const AttendantCudaConfig& config, int64_t len, uint32_t seed, const Holes& holes);

  int64_t batch() const { return static_cast<int64_t>(starts_.size()) - 1; }
  int64_t tokens() const { return starts_.back(); }
  int64_t start(int64_t index) const { return starts_[static_cast<size_t>(index)]; }
  int64_t len(int64_t index) const { return start(index + 1) - start(index); }
  int64_t keys(int64_t index) const { return keys_[static_cast<size_t>(index)]; }
  // Points into this object.
  AttendantCudaBatch view() const;

 private:
  std::vector<int32_t> ids_, positions_, segments_;  // [tokens]
  std::vector<float> scales_;                        // [tokens], of a config that scales_tokens
  std::vector<int64_t> starts_ = {0};                // [batch + 1]
  std::vector<int64_t> keys_;                        // [batch]
};
PackedSequences RandomBatch(const AttendantCudaConfig& config, const std::vector<int64_t>& lens,
                            uint32_t seed, const Holes& holes = {});

// An encoder in the manner of a family, small.
struct Variant {
  const char* name;
  AttendantCudaConfig config;
  Parts parts;
  Holes holes;
};
// All that encoders may differ in, as families combine it. Dimensions suit every format.
std::vector<Variant> ListVariants();

// The results of an encoder for a batch, by plain loops with sums in double.
struct PlainResults {
  std::vector<std::vector<float>> states;  // [layers + 1] of [tokens, hidden]
  // [layers] of, sequence after sequence, [heads, len, len]
  std::vector<std::vector<float>> attention_weights;
};
PlainResults RunPlain(const RandomEncoder& encoder, const PackedSequences& batch);
// The mean of rows [begin, end) of states [tokens, hidden], divided by its norm.
std::vector<float> PlainMean(const std::vector<float>& states, int64_t begin, int64_t end,
                             int64_t hidden);

// 1 - cosine of the two, 2 when a number is not finite.
double CosineDistance(const float* a, const float* b, int64_t count);
double LargestDifference(const float* a, const float* b, int64_t count);

}  // namespace attendant::cuda_test
