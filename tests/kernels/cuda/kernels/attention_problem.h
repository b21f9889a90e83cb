// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/kernels/attention_kernels.h"
#include "tests/kernels/cuda/kernels/device.h"

namespace attendant::cuda {

// Sequences with their own queries and keys, and what attention is to do with them.
struct AttentionShape {
  DType dtype = DType::kBf16;
  int64_t heads = 2;
  int64_t head_dim = 64;
  std::vector<int64_t> queries = {};  // of each sequence
  std::vector<int64_t> keys = {};     // of each; empty: as many as queries
  AttentionRule rule = {};
  bool bias = false;
  bool allowed = false;
  bool one_mask_row = false;  // the same for all queries
  int64_t heads_per_key = 1;
  bool distances = false;        // the rule goes by positions; as the next two, without `keys`
  bool gaps = false;             // between the positions of every second sequence
  bool distance_scores = false;  // one for each head and distance is added
  float deviation = 1;           // of q and k
  uint32_t seed = 1;

  std::string Describe() const;
};

// Its operands, in the packed layouts that the engine has: q, k and v are columns of the same rows
// where there are as many queries as keys.
class AttentionProblem {
 public:
  explicit AttentionProblem(const AttentionShape& shape);

  // context [query rows, heads, head_dim] from the kernels; what they must not write is checked.
  std::vector<float> Run();
  // The definition, in double, and for each number what a relative error of its terms may come to.
  struct Expected {
    double value, terms;
  };
  std::vector<Expected> Compute() const;

  // Lets all rows of one sequence hold this.
  void Fill(size_t sequence, float value);
  // Lets a sequence be the same as another problem's of the same length, heads and format.
  void CopySequence(const AttentionProblem& other, size_t from, size_t to);

  int64_t query_rows() const { return query_starts_.back(); }
  const AttentionShape& shape() const { return shape_; }

 private:
  // Of positions.
  int64_t Distance(size_t sequence, int64_t i, int64_t j) const;
  float Score(size_t sequence, int64_t head, int64_t i, int64_t j) const;
  DeviceVector<AttentionTask> Tasks() const;

  AttentionShape shape_;
  std::vector<int64_t> query_starts_, key_starts_;
  DeviceVector<int64_t> mask_starts_;
  int64_t hidden_, stride_;  // of a row of q, k, v
  DeviceValues q_, k_, v_;
  DeviceVector<float> bias_;
  DeviceVector<uint8_t> allowed_;
  DeviceVector<int32_t> positions_;      // [query rows]
  DeviceVector<float> distance_scores_;  // [heads, 2 * kMaxPositions - 1]
};

// Runs it in several orders: the bits must not differ, and each number must be right to `tolerance`
// roundings of the format.
void ExpectAttention(AttentionProblem& problem, double tolerance = 2);

}  // namespace attendant::cuda
