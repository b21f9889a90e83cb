// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace attendant::client {
namespace {

constexpr double kHighestCorrelation = 0.9;  // an interval four times as wide

struct Moments {
  double count = 0, mean = 0;
  double error_squared = 0;  // variance of the mean
};

// By how much the variance of a mean grows when each value is like the one before it (a process of
// first order). The estimate of the correlation is too low by 1 / count.
double Inflation(std::span<const double> deviations, double squares) {
  if (squares == 0) return 1;
  double products = 0;
  for (size_t i = 1; i < deviations.size(); ++i) products += deviations[i - 1] * deviations[i];
  const double correlation = std::clamp(
      products / squares + 1 / static_cast<double>(deviations.size()), 0.0, kHighestCorrelation);
  return (1 + correlation) / (1 - correlation);
}

Moments MomentsOf(std::span<const double> values) {
  Moments moments{.count = static_cast<double>(values.size())};
  for (double value : values) moments.mean += value / moments.count;
  double squares = 0;
  std::vector<double> deviations;
  for (double value : values) {
    deviations.push_back(value - moments.mean);
    squares += deviations.back() * deviations.back();
  }
  moments.error_squared =
      squares / (moments.count - 1) / moments.count * Inflation(deviations, squares);
  return moments;
}

struct Limits {
  double few[5];  // of 1 to 5 degrees of freedom
  double normal;
};
constexpr Limits kLimits[] = {{{12.7062, 4.3027, 3.1824, 2.7764, 2.5706}, 1.959964},
                              {{76.390, 10.886, 6.2315, 4.8510, 4.2193}, 2.638257}};

}  // namespace

double StudentLimit(double degrees_of_freedom, Sure sure) {
  const Limits& limits = kLimits[static_cast<size_t>(sure)];
  if (degrees_of_freedom < 6) return limits.few[static_cast<size_t>(degrees_of_freedom) - 1];
  // Cornish and Fisher's expansion around the normal distribution's limit; within 0.5 % here.
  const double z = limits.normal, n = degrees_of_freedom;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

std::optional<Estimate> EstimateMean(std::span<const double> values) {
  if (values.size() < kMinValues) return std::nullopt;
  const Moments moments = MomentsOf(values);
  return Estimate{.value = moments.mean,
                  .half_width = StudentLimit(moments.count - 1) * std::sqrt(moments.error_squared)};
}

std::optional<Estimate> EstimateDifference(std::span<const double> a, std::span<const double> b,
                                           Sure sure) {
  if (a.size() < kMinValues || b.size() < kMinValues) return std::nullopt;
  const Moments left = MomentsOf(a), right = MomentsOf(b);
  const double error_squared = left.error_squared + right.error_squared;
  Estimate difference{.value = right.mean - left.mean};
  if (error_squared == 0) return difference;
  const double degrees_of_freedom = error_squared * error_squared /
                                    (left.error_squared * left.error_squared / (left.count - 1) +
                                     right.error_squared * right.error_squared / (right.count - 1));
  difference.half_width = StudentLimit(degrees_of_freedom, sure) * std::sqrt(error_squared);
  return difference;
}

}  // namespace attendant::client
