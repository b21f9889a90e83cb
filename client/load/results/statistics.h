// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace attendant::client {

// A value and its 95 % confidence interval, value - half_width to value + half_width, by Student's
// distribution. Values are taken as those of neighbouring times: the interval is wider where each
// is like the one before it, as latencies are near saturation.
struct Estimate {
  double value = 0;
  double half_width = 0;
};

// The fewest values for a confidence interval.
inline constexpr size_t kMinValues = 5;

// The mean of `values`. nullopt with fewer than kMinValues.
std::optional<Estimate> EstimateMean(std::span<const double> values);

// The meaning of the 95 % confidence: one interval contains its true value (kOfOne), or all six
// intervals of a comparison do (kOfSix).
enum class Sure { kOfOne, kOfSix };

// The mean of `b` minus that of `a`, whose deviations may differ (Welch). nullopt when either has
// fewer than kMinValues.
std::optional<Estimate> EstimateDifference(std::span<const double> a, std::span<const double> b,
                                           Sure sure = Sure::kOfOne);

// The value that Student's t exceeds in 2.5 % of cases, or in a sixth of that. REQUIRES:
// degrees_of_freedom >= 1.
double StudentLimit(double degrees_of_freedom, Sure sure = Sure::kOfOne);

}  // namespace attendant::client
