// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/arena.h"
#include "kernels/cpu/heads/row_linear.h"
#include "kernels/heads/token_head.h"

namespace attendant::cpu {

// A TokenHead with packed weights. Immutable, thread-safe.
class PackedTokenHead {
 public:
  // Copies the weights. `columns` cut `out` as RowLinear has it. Errors are CreateMatmul's. Throws
  // std::exception.
  static absl::StatusOr<PackedTokenHead> Create(const HeadCompute& compute, const TokenHead& head,
                                                int64_t columns = 0);

  int64_t hidden() const { return dense_ ? dense_->inputs() : width(); }
  int64_t width() const { return out_.inputs(); }  // of the rows that `out` reads
  const RowLinear& out() const { return out_; }
  const HeadCompute& compute() const { return compute_; }
  int64_t operand_row_bytes() const { return width() * compute_.operand_bytes(); }
  // Rows of states have operands of their own, which do not fit in those of `out`.
  bool converts_apart() const { return hidden() > width(); }
  int64_t bytes() const;

  // One thread's means to run it. The head must outlive it, where it is.
  class Thread {
   public:
    // Throws std::exception.
    explicit Thread(const PackedTokenHead& head);

    // operand [RoundUpRows(states.size()), width] = what `out` reads of these states, [hidden]
    // each. False when a matmul failed. REQUIRES: at most kHeadRows states.
    [[nodiscard]] bool ReadStates(std::span<const float* const> states, std::byte* operand);
    // y() [rows, columns] = slice `slice` of out(operand), in f32.
    [[nodiscard]] bool Project(int64_t slice, int64_t rows, const std::byte* operand) {
      return out_.Run(slice, rows, operand, y_);
    }
    const float* y() const { return y_; }
    // An operand for kHeadRows rows.
    std::byte* operand() const { return operand_; }
    int64_t arena_bytes() const { return memory_.used_bytes(); }

   private:
    const PackedTokenHead* head_;
    std::optional<RowLinear::Executor> dense_;
    RowLinear::Executor out_;
    Arena memory_;
    std::byte* states_;  // [kHeadRows, hidden] of states that are converted apart, or null
    std::byte* operand_;
    float* y_;  // [kHeadRows, max(width, columns)]
  };

 private:
  PackedTokenHead(const HeadCompute& compute, RowLinear out)
      : compute_(compute), out_(std::move(out)) {}
  void Transform(float* row) const;

  HeadCompute compute_;
  std::optional<RowLinear> dense_;
  Activation activation_ = Activation::kGeluErf;
  std::vector<float> gamma_, beta_, zeros_;  // [width], where there is a dense
  float epsilon_ = 0;
  RowLinear out_;
};

}  // namespace attendant::cpu
