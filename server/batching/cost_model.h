// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "absl/time/time.h"

namespace attendant {

// The properties of a batch that its time depends on.
struct BatchShape {
  int64_t sequences = 0;
  int64_t tokens = 0;
  int64_t squares = 0;  // sum of len^2: the size of attention
  int64_t head_ns = 0;  // that its heads take, as measured when the model was loaded

  void Add(int64_t len, int64_t added_head_ns = 0) {
    ++sequences;
    tokens += len;
    squares += len * len;
    head_ns += added_head_ns;
  }
};

// Estimates the time of a batch: a + b sequences + c tokens + d squares, none of them negative,
// plus that of its heads, times a correction that follows the batches that run. Pure: no clock, no
// thread.
//
// A model without a fit learns a time per token from the batches alone: enough for a retry hint,
// not for a promise.
class CostModel {
 public:
  struct Sample {
    BatchShape shape;
    absl::Duration time;
  };

  // The terms of the estimate: 1, sequences, tokens and squares.
  static constexpr size_t kTerms = 4;

  CostModel() = default;

  // The fit with the least sum of squared relative errors. REQUIRES: times are positive.
  static CostModel Fit(std::span<const Sample> samples);

  bool fitted() const { return fitted_; }
  bool known() const;  // Estimate says something

  // Zero before anything is known.
  absl::Duration Estimate(const BatchShape& shape) const;

  // A batch of this shape took `time`. Moves the correction a fifth of the way, by 8 % at most: a
  // single batch that was held up by something else says little.
  void Observe(const BatchShape& shape, absl::Duration time);

 private:
  using Terms = std::array<double, kTerms>;

  static Terms TermsOf(const BatchShape& shape);
  double Seconds(const BatchShape& shape) const;  // without the correction

  Terms seconds_{};  // of one unit of each term
  double correction_ = 1;
  bool fitted_ = false;
};

}  // namespace attendant
