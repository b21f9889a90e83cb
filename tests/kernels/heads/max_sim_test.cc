// SPDX-License-Identifier: Apache-2.0
#include "kernels/heads/max_sim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace attendant {
namespace {

std::vector<float> Vectors(int64_t count, int64_t dims, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count * dims));
  for (float& value : values) value = normal(random);
  return values;
}

double Expected(const std::vector<float>& query, const std::vector<float>& document, size_t dims) {
  double sum = 0;
  for (size_t i = 0; i < query.size(); i += dims) {
    double largest = -std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < document.size(); j += dims) {
      double dot = 0;
      for (size_t k = 0; k < dims; ++k) {
        dot += static_cast<double>(query[i + k]) * static_cast<double>(document[j + k]);
      }
      largest = std::max(largest, dot);
    }
    sum += largest;
  }
  return sum;
}

TEST(MaxSimTest, SumsTheLargestDotProductOfEachVectorOfTheQuery) {
  for (const int64_t dims : {1, 3, 16, 17, 96}) {
    for (const int64_t count : {1, 2, 31}) {
      const std::vector<float> query = Vectors(5, dims, 1), document = Vectors(count, dims, 2);
      EXPECT_NEAR(static_cast<double>(MaxSim(query, document, dims)),
                  Expected(query, document, static_cast<size_t>(dims)), 1e-3)
          << dims << " dims, " << count << " vectors";
    }
  }
}

TEST(MaxSimTest, ALargestDotProductBelowZeroCounts) {
  const std::vector<float> query = {1, 0, 0, 1}, document = {-2, -3, -5, -1};
  EXPECT_EQ(MaxSim(query, document, 2), -3);
}

TEST(MaxSimTest, TakesTheSidesInTheirOrder) {
  const std::vector<float> one = {1, 0}, two = {1, 0, 0.5f, 0};
  EXPECT_EQ(MaxSim(one, two, 2), 1);
  EXPECT_EQ(MaxSim(two, one, 2), 1.5f);
}

TEST(MaxSimTest, WithoutVectorsIsZero) {
  const std::vector<float> some = {1, 2};
  EXPECT_EQ(MaxSim(some, {}, 2), 0);
  EXPECT_EQ(MaxSim({}, some, 2), 0);
}

}  // namespace
}  // namespace attendant
