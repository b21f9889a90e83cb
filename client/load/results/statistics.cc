// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/statistics.h"

#include <cmath>

namespace attendant::client {
namespace {

struct Moments {
  double count = 0, mean = 0;
  double error_squared = 0;  // variance of the mean
};

Moments MomentsOf(std::span<const double> values) {
  Moments moments{.count = static_cast<double>(values.size())};
  for (double value : values) moments.mean += value / moments.count;
  double squares = 0;
  for (double value : values) squares += (value - moments.mean) * (value - moments.mean);
  moments.error_squared = squares / (moments.count - 1) / moments.count;
  return moments;
}

}  // namespace

double Student975(double degrees_of_freedom) {
  static constexpr double kFew[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706};
  if (degrees_of_freedom < 6) return kFew[static_cast<size_t>(degrees_of_freedom) - 1];
  // Cornish and Fisher's expansion around the normal distribution's 1.96; within 0.1 % here.
  const double z = 1.959964, n = degrees_of_freedom;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

std::optional<Estimate> EstimateMean(std::span<const double> values) {
  if (values.size() < kMinValues) return std::nullopt;
  const Moments moments = MomentsOf(values);
  return Estimate{.value = moments.mean,
                  .half_width = Student975(moments.count - 1) * std::sqrt(moments.error_squared)};
}

std::optional<Estimate> EstimateDifference(std::span<const double> a, std::span<const double> b) {
  if (a.size() < kMinValues || b.size() < kMinValues) return std::nullopt;
  const Moments left = MomentsOf(a), right = MomentsOf(b);
  const double error_squared = left.error_squared + right.error_squared;
  Estimate difference{.value = right.mean - left.mean};
  if (error_squared == 0) return difference;
  const double degrees_of_freedom = error_squared * error_squared /
                                    (left.error_squared * left.error_squared / (left.count - 1) +
                                     right.error_squared * right.error_squared / (right.count - 1));
  difference.half_width = Student975(degrees_of_freedom) * std::sqrt(error_squared);
  return difference;
}

}  // namespace attendant::client
