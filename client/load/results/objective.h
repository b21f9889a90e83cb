// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/load/results/result.h"

namespace attendant::client {

// A bound on a figure of a load. Figures:
//   mean, max, p50, p99.9 (any percentile)  response time; with `service.` before it, service time
//   error_rate                              share of the requests that failed or were not sent
//   requests_per_s, sequences_per_s, tokens_per_s
class Condition {
 public:
  // "p99>50ms", "error_rate>=1%", "requests_per_s<100". FAILED_PRECONDITION says what is wrong.
  static absl::StatusOr<Condition> Parse(absl::string_view text);
  // An objective, "p99=50ms" or "error_rate<=0.1%": the condition that the figure is at most so
  // large. Figures per second are refused.
  static absl::StatusOr<Condition> ParseObjective(absl::string_view text);

  // True if the condition holds. A request that was not sent, or that ended with DEADLINE_EXCEEDED,
  // counts as one that takes for ever; one that failed otherwise is in no latency. A figure that
  // the load does not have (of no answered request, or tokens that the protocol does not tell)
  // makes no condition true.
  bool Holds(const LoadResult& result) const;
  // True if the load has the figure.
  bool IsKnown(const LoadResult& result) const;

  // True if the figure is error_rate.
  bool bounds_errors() const { return unit_ == Unit::kShare; }

  // The bound, if the figure is a latency; zero for other figures.
  absl::Duration latency_bound() const {
    return unit_ == Unit::kSeconds ? absl::Seconds(bound_) : absl::ZeroDuration();
  }

  // The text that was parsed.
  const std::string& text() const { return text_; }
  // "p99 is 62.1 ms", or "p99 is unknown".
  std::string Describe(const LoadResult& result) const;

 private:
  enum class Unit { kSeconds, kShare, kPerSecond };
  enum class Relation { kAbove, kAtLeast, kBelow, kAtMost };

  static absl::StatusOr<Condition> ParseParts(absl::string_view text, absl::string_view name,
                                              absl::string_view value, Relation relation);
  absl::Status SetFigure(absl::string_view name);
  absl::Status SetBound(absl::string_view value);
  // Seconds, a share or a number per second; NaN when the load does not have it.
  double Figure(const LoadResult& result) const;
  double LatencyFigure(const LoadResult& result) const;

  std::string text_, figure_;
  Unit unit_ = Unit::kSeconds;
  Relation relation_ = Relation::kAbove;
  double bound_ = 0;
  bool of_service_ = false;
  double percent_ = 0;  // of a percentile
};

}  // namespace attendant::client
