// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/attention/flash_attention.h"
#include "tests/support/guarded_allocator.h"

namespace attendant::cpu {

// The dimensions and options of a test of attention.
struct AttentionShape {
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t head_dim = 32;
  int64_t value_dim = 32;
  int64_t keys_before = kAllKeys;
  int64_t keys_after = kAllKeys;
  enum class Bias { kNone, kFull, kOneForAll, kOfDistance } bias = Bias::kNone;
  bool allowed = false;  // a random mask, in which every 7th query sees nothing
  int64_t padding =
      0;              // keys at the end that one mask of all queries leaves out; without `allowed`
  bool hole = false;  // the same mask leaves out key 0
  bool masking = false;  // a third of the bias is -inf, all of it for every 5th query
  bool out_is_bf16 = false;
  float spread = 1;  // standard deviation of queries and keys
  float value = 0;   // of all values; 0: random ones
  float scale = 0;   // 0: 1 / sqrt(head_dim)
};

// One head's random operands, each in rows further apart than they are wide, with NaN between them
// and no memory after the last, starting at an address that is a multiple of one value's size only.
class AttentionProblem {
 public:
  AttentionProblem(const AttentionShape& shape, DType dtype, uint32_t seed = 1);

  // All but the scratch, for all queries. Points into this object.
  AttentionArgs args();

  // Runs all queries in pieces of `piece` (0: at once) with scratch of the size asked for.
  void Run(const FlashAttention& attention, int64_t piece = 0);

  // Expects what plain loops with sums in double give, within what rounding the operands and
  // weights to their format allows, and that nothing was written elsewhere.
  void ExpectPlain();

  // The same of the weights themselves, for all queries.
  void ExpectPlainWeights(const FlashAttention& attention);

  const GuardedVector<std::byte>& out() const { return out_.bytes; }

 private:
  struct Rows {
    Rows() = default;
    Rows(int64_t rows, int64_t columns, int64_t gap, int64_t value_bytes);
    std::byte* at(int64_t row, int64_t column);
    double Read(int64_t row, int64_t column) const;
    void Write(int64_t row, int64_t column, float value);

    int64_t rows = 0, columns = 0, stride = 0, value_bytes = 4;
    GuardedVector<std::byte> bytes;  // begins with one value of nothing
  };
  void Fill(Rows& rows, float spread);
  void FillBias();
  void FillAllowed();
  bool Sees(int64_t query, int64_t key) const;
  double Bias(int64_t query, int64_t key) const;
  double Scale() const;
  double Looseness() const;
  std::vector<double> PlainWeights(int64_t query) const;  // [keys]
  std::vector<double> PlainRow(int64_t query) const;

  AttentionShape shape_;
  DType dtype_;
  uint32_t seed_;
  Rows q_, k_, v_, out_;
  GuardedVector<float> bias_;
  int64_t bias_origin_ = 0, bias_stride_ = 0;
  GuardedVector<uint8_t> allowed_;  // [queries, keys], or [keys] with stride 0
  int64_t allowed_stride_ = 0;
};

}  // namespace attendant::cpu
