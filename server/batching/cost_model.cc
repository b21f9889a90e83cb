// SPDX-License-Identifier: Apache-2.0
#include "server/batching/cost_model.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/core/check.h"

namespace attendant {
namespace {

constexpr size_t kTerms = CostModel::kTerms;

// Normal equations of least squares. The unknowns are the seconds of one unit of each term.
struct Equations {
  std::array<std::array<double, kTerms>, kTerms> matrix{};
  std::array<double, kTerms> right{};
};

// Gaussian elimination with pivots over the unknowns in `used`. An unknown that the samples do not
// determine becomes zero.
std::array<double, kTerms> Solve(Equations equations, const std::vector<size_t>& used) {
  const size_t n = used.size();
  std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) rows[i][j] = equations.matrix[used[i]][used[j]];
    rows[i][n] = equations.right[used[i]];
  }
  std::array<double, kTerms> solution{};
  std::vector<bool> determined(n);
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k; i < n; ++i) {
      if (std::abs(rows[i][k]) > std::abs(rows[pivot][k])) pivot = i;
    }
    if (std::abs(rows[pivot][k]) < 1e-12 * equations.matrix[used[k]][used[k]]) continue;
    std::swap(rows[k], rows[pivot]);
    determined[k] = true;
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = rows[i][k] / rows[k][k];
      for (size_t j = k; j <= n; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  for (size_t k = 0; k < n; ++k) {
    if (determined[k]) solution[used[k]] = rows[k][n] / rows[k][k];
  }
  return solution;
}

}  // namespace

CostModel::Terms CostModel::TermsOf(const BatchShape& shape) {
  return {1, static_cast<double>(shape.sequences), static_cast<double>(shape.tokens),
          static_cast<double>(shape.squares)};
}

CostModel CostModel::Fit(std::span<const Sample> samples) {
  CostModel model;
  if (samples.empty()) return model;
  Equations equations;
  for (const Sample& sample : samples) {
    ATTENDANT_CHECK(sample.time > absl::ZeroDuration());
    const Terms terms = TermsOf(sample.shape);
    const double weight = 1 / absl::ToDoubleSeconds(sample.time);
    for (size_t i = 0; i < kTerms; ++i) {
      equations.right[i] += terms[i] * weight;
      for (size_t j = 0; j < kTerms; ++j) {
        equations.matrix[i][j] += terms[i] * terms[j] * weight * weight;
      }
    }
  }
  std::vector<size_t> used = {0, 1, 2, 3};
  while (!used.empty()) {
    model.seconds_ = Solve(equations, used);
    const auto least = std::min_element(model.seconds_.begin(), model.seconds_.end());
    if (*least >= 0) break;
    std::erase(used, static_cast<size_t>(least - model.seconds_.begin()));
  }
  model.fitted_ = !used.empty();
  return model;
}

bool CostModel::known() const {
  return std::any_of(seconds_.begin(), seconds_.end(), [](double term) { return term > 0; });
}

double CostModel::Seconds(const BatchShape& shape) const {
  const Terms terms = TermsOf(shape);
  double seconds = 1e-9 * static_cast<double>(shape.head_ns);
  for (size_t i = 0; i < kTerms; ++i) seconds += seconds_[i] * terms[i];
  return seconds;
}

absl::Duration CostModel::Estimate(const BatchShape& shape) const {
  return absl::Seconds(correction_ * Seconds(shape));
}

void CostModel::Observe(const BatchShape& shape, absl::Duration time) {
  constexpr double kStep = 0.2, kMost = 1.5;
  if (shape.tokens <= 0 || time <= absl::ZeroDuration()) return;
  const double seconds = absl::ToDoubleSeconds(time);
  if (!known()) {
    seconds_[2] = seconds / static_cast<double>(shape.tokens);
    return;
  }
  const double ratio = seconds / Seconds(shape) / correction_;
  correction_ *= std::pow(std::clamp(ratio, 1 / kMost, kMost), kStep);
}

}  // namespace attendant
