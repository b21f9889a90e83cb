// SPDX-License-Identifier: Apache-2.0
#include "kernels/heads/sentence_head.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "kernels/core/pooling.h"

namespace attendant {
namespace {

using Dense = SentenceHead::Dense;

void Apply(const Dense& dense, size_t rows, std::vector<float>& values) {
  std::vector<float> output(rows * static_cast<size_t>(dense.linear.outputs));
  dense.linear.ApplyRows(values, output);
  for (float& value : output) value = Activate(dense.activation, value);
  if (dense.use_residual) {
    std::vector<float> added = std::move(values);
    if (dense.residual.outputs > 0) {
      const std::vector<float> input = std::exchange(added, std::vector<float>(output.size()));
      dense.residual.ApplyRows(input, added);
    }
    for (size_t i = 0; i < output.size(); ++i) output[i] += added[i];
  }
  values = std::move(output);
}

// `values` [rows, ..]
template <typename Function>
void ForEachRow(size_t rows, std::vector<float>& values, const Function& apply) {
  const size_t width = values.size() / rows;
  for (size_t row = 0; row < rows; ++row) apply(std::span(values).subspan(row * width, width));
}

void Apply(const HeadNorm& norm, size_t rows, std::vector<float>& values) {
  ForEachRow(rows, values, [&norm](std::span<float> row) { norm.Apply(row); });
}
void Apply(const SentenceHead::Normalize&, size_t rows, std::vector<float>& values) {
  ForEachRow(rows, values, [](std::span<float> row) { NormalizeL2(row); });
}
void Apply(const SentenceHead::Truncate& truncate, size_t rows, std::vector<float>& values) {
  const size_t outputs = std::min(values.size() / rows, static_cast<size_t>(truncate.outputs));
  float* kept = values.data();
  ForEachRow(rows, values, [&](std::span<float> row) {
    if (kept != row.data()) std::copy_n(row.data(), outputs, kept);
    kept += outputs;
  });
  values.resize(rows * outputs);
}

}  // namespace

int64_t SentenceHead::OutputWidth(int64_t width) const {
  for (const Module& module : modules) {
    if (const auto* dense = std::get_if<Dense>(&module)) width = dense->linear.outputs;
    if (const auto* cut = std::get_if<Truncate>(&module)) width = std::min(width, cut->outputs);
  }
  return width;
}

int64_t SentenceHead::InputWidth() const {
  for (const Module& module : modules) {
    if (const auto* dense = std::get_if<Dense>(&module)) return dense->linear.inputs;
    if (const auto* norm = std::get_if<HeadNorm>(&module)) {
      return static_cast<int64_t>(norm->gamma.size());
    }
  }
  return 0;
}

std::vector<float> SentenceHead::Compute(std::vector<float> pooled, size_t rows) const {
  for (const Module& module : modules) {
    std::visit([&](const auto& one) { Apply(one, rows, pooled); }, module);
  }
  return pooled;
}

}  // namespace attendant
