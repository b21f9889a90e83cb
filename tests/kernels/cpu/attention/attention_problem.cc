// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/cpu/attention/attention_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace attendant::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::byte kUntouched{0x5a};

}  // namespace

AttentionProblem::Rows::Rows(int64_t num_rows, int64_t num_columns, int64_t gap, int64_t size)
    : rows(num_rows), columns(num_columns), stride(num_columns + gap), value_bytes(size) {
  const int64_t values = 1 + (rows == 0 ? 0 : (rows - 1) * stride + columns);
  bytes.assign(static_cast<size_t>(values * size), std::byte{0xff});  // NaN in both formats
}

std::byte* AttentionProblem::Rows::at(int64_t row, int64_t column) {
  return bytes.data() + (1 + row * stride + column) * value_bytes;
}

double AttentionProblem::Rows::Read(int64_t row, int64_t column) const {
  const std::byte* value = bytes.data() + (1 + row * stride + column) * value_bytes;
  uint32_t bits = 0;
  std::memcpy(&bits, value, static_cast<size_t>(value_bytes));
  return std::bit_cast<float>(value_bytes == 2 ? bits << 16 : bits);
}

// In rows of bf16, the bf16 next to `value` towards zero.
void AttentionProblem::Rows::Write(int64_t row, int64_t column, float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value_bytes == 2) bits >>= 16;
  std::memcpy(at(row, column), &bits, static_cast<size_t>(value_bytes));
}

AttentionProblem::AttentionProblem(const AttentionShape& shape, DType dtype, uint32_t seed)
    : shape_(shape), dtype_(dtype), seed_(seed) {
  const int64_t size = dtype == DType::kBf16 ? 2 : 4;
  q_ = Rows(shape.queries, shape.head_dim, 3, size);
  k_ = Rows(shape.keys, shape.head_dim, 1, size);
  v_ = Rows(shape.keys, shape.value_dim, 2, size);
  out_ = Rows(shape.queries, shape.value_dim, 5, shape.out_is_bf16 ? 2 : 4);
  std::fill(out_.bytes.begin(), out_.bytes.end(), kUntouched);
  Fill(q_, shape.spread);
  Fill(k_, shape.spread);
  Fill(v_, 1);
  for (int64_t i = 0; shape.value != 0 && i < shape.keys * shape.value_dim; ++i) {
    v_.Write(i / shape.value_dim, i % shape.value_dim, shape.value);
  }
  FillBias();
  FillAllowed();
}

void AttentionProblem::FillAllowed() {
  if (shape_.padding > 0 || shape_.hole) {
    allowed_ = GuardedVector<uint8_t>(static_cast<size_t>(shape_.keys), 1);
    std::fill_n(allowed_.end() - shape_.padding, shape_.padding, uint8_t{0});
    if (shape_.hole) allowed_[0] = 0;
    return;
  }
  allowed_stride_ = shape_.keys;
  if (!shape_.allowed) return;
  std::mt19937 random(seed_);
  allowed_ = GuardedVector<uint8_t>(static_cast<size_t>(shape_.queries * shape_.keys));
  for (int64_t i = 0; i < shape_.queries * shape_.keys; ++i) {
    const bool blind = i / shape_.keys % 7 == 3;
    allowed_[static_cast<size_t>(i)] =
        blind || random() % 3 == 0 ? 0 : static_cast<uint8_t>(1 + random() % 255);
  }
}

void AttentionProblem::Fill(Rows& rows, float spread) {
  std::mt19937 random(seed_++);
  std::normal_distribution<float> normal(0, spread);
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (int64_t column = 0; column < rows.columns; ++column) {
      const uint32_t bits = std::bit_cast<uint32_t>(normal(random)) & 0xffff0000;  // exact in bf16
      rows.Write(row, column, std::bit_cast<float>(bits));
    }
  }
}

void AttentionProblem::FillBias() {
  using enum AttentionShape::Bias;
  if (shape_.bias == kNone) return;
  int64_t values = shape_.keys;
  if (shape_.bias == kFull) {
    bias_stride_ = shape_.keys;
    values = shape_.queries * shape_.keys;
  } else if (shape_.bias == kOfDistance) {
    bias_stride_ = -1;
    bias_origin_ = shape_.queries - 1;
    values = shape_.queries + shape_.keys - 1;
  }
  std::mt19937 random(seed_);
  std::normal_distribution<float> normal(0, 2);
  bias_ = GuardedVector<float>(static_cast<size_t>(values));
  for (int64_t i = 0; i < values; ++i) {
    const bool blind = shape_.bias == kFull && i / shape_.keys % 5 == 2;
    bias_[static_cast<size_t>(i)] =
        shape_.masking && (blind || random() % 3 == 0) ? -kInfinity : normal(random);
  }
}

AttentionArgs AttentionProblem::args() {
  return {.q = q_.at(0, 0),
          .k = k_.at(0, 0),
          .v = v_.at(0, 0),
          .out = out_.at(0, 0),
          .out_is_bf16 = shape_.out_is_bf16,
          .q_stride = q_.stride,
          .k_stride = k_.stride,
          .v_stride = v_.stride,
          .out_stride = out_.stride,
          .keys = shape_.keys,
          .head_dim = shape_.head_dim,
          .value_dim = shape_.value_dim,
          .query_begin = 0,
          .query_end = shape_.queries,
          .scale = static_cast<float>(Scale()),
          .bias = bias_.empty() ? nullptr : bias_.data() + bias_origin_,
          .bias_stride = bias_stride_,
          .allowed = allowed_.empty() ? nullptr : allowed_.data(),
          .allowed_stride = allowed_stride_,
          .keys_before = shape_.keys_before,
          .keys_after = shape_.keys_after};
}

void AttentionProblem::Run(const FlashAttention& attention, int64_t piece) {
  const int64_t bytes = attention.ScratchBytes(shape_.keys, shape_.head_dim, shape_.value_dim);
  std::vector<std::byte> scratch(static_cast<size_t>(bytes), std::byte{0xff});
  AttentionArgs pieces = args();
  pieces.scratch = scratch.data();
  if (piece == 0) piece = shape_.queries;
  for (int64_t begin = 0; begin < shape_.queries; begin += piece) {
    pieces.query_begin = begin;
    pieces.query_end = std::min(begin + piece, shape_.queries);
    attention.Run(pieces);
  }
}

double AttentionProblem::Scale() const {
  if (shape_.scale != 0) return shape_.scale;
  return 1 / std::sqrt(static_cast<float>(shape_.head_dim));
}

// Of tolerances: a score's rounding grows with the spread, until one key has all the weight.
double AttentionProblem::Looseness() const {
  return shape_.spread > 1e3f ? 1 : std::max(1.0f, shape_.spread);
}

bool AttentionProblem::Sees(int64_t query, int64_t key) const {
  if (key < query - shape_.keys_before || key > query + shape_.keys_after) return false;
  return allowed_.empty() || allowed_[static_cast<size_t>(query * allowed_stride_ + key)] != 0;
}

double AttentionProblem::Bias(int64_t query, int64_t key) const {
  if (bias_.empty()) return 0;
  return bias_[static_cast<size_t>(bias_origin_ + query * bias_stride_ + key)];
}

std::vector<double> AttentionProblem::PlainWeights(int64_t query) const {
  std::vector<double> logits;
  for (int64_t key = 0; key < shape_.keys; ++key) {
    double dot = 0;
    for (int64_t d = 0; d < shape_.head_dim; ++d) dot += q_.Read(query, d) * k_.Read(key, d);
    logits.push_back(Sees(query, key) ? dot * Scale() + Bias(query, key) : -kInfinity);
  }
  const double largest =
      logits.empty() ? -kInfinity : *std::max_element(logits.begin(), logits.end());
  if (largest == -kInfinity) return std::vector<double>(logits.size());
  double sum = 0;
  for (double& logit : logits) sum += logit = std::exp(logit - largest);
  for (double& logit : logits) logit /= sum;
  return logits;
}

std::vector<double> AttentionProblem::PlainRow(int64_t query) const {
  std::vector<double> out(static_cast<size_t>(shape_.value_dim));
  const std::vector<double> weights = PlainWeights(query);
  for (int64_t key = 0; key < shape_.keys; ++key) {
    for (int64_t d = 0; d < shape_.value_dim; ++d) {
      out[static_cast<size_t>(d)] += weights[static_cast<size_t>(key)] * v_.Read(key, d);
    }
  }
  return out;
}

void AttentionProblem::ExpectPlainWeights(const FlashAttention& attention) {
  constexpr float kUnwritten = 12345;
  const int64_t stride = shape_.keys + 3;
  std::vector<float> weights(static_cast<size_t>(shape_.queries * stride), kUnwritten);
  std::vector<std::byte> scratch(
      static_cast<size_t>(attention.WeightsScratchBytes(shape_.keys, shape_.head_dim)));
  AttentionArgs all = args();
  all.v = nullptr;
  all.out = nullptr;
  all.scratch = scratch.data();
  attention.Weights(all, weights.data(), stride);
  for (int64_t query = 0; query < shape_.queries; ++query) {
    const std::vector<double> expected = PlainWeights(query);
    for (int64_t key = 0; key < stride; ++key) {
      const float weight = weights[static_cast<size_t>(query * stride + key)];
      if (key >= shape_.keys) {
        ASSERT_EQ(weight, kUnwritten) << "written beyond a row of the weights";
      } else {
        ASSERT_NEAR(weight, expected[static_cast<size_t>(key)], 5e-6 * Looseness())
            << "query " << query << " key " << key << " of " << shape_.keys;
      }
    }
  }
}

void AttentionProblem::ExpectPlain() {
  // Of bf16 operands only the weights are rounded, by 2^-9 each, mostly with different signs.
  const double tolerance = dtype_ == DType::kBf16 ? 8e-3 : 1e-5 * Looseness();
  Rows untouched(shape_.queries, shape_.value_dim, 5, out_.value_bytes);
  std::fill(untouched.bytes.begin(), untouched.bytes.end(), kUntouched);
  Rows gaps = out_;
  for (int64_t query = 0; query < shape_.queries; ++query) {
    const std::vector<double> expected = PlainRow(query);
    for (int64_t d = 0; d < shape_.value_dim; ++d) {
      const double want = expected[static_cast<size_t>(d)];
      const double rounding = shape_.out_is_bf16 ? std::abs(want) / 256 : 0;
      ASSERT_NEAR(out_.Read(query, d), want, tolerance + rounding)
          << "query " << query << " of " << shape_.queries << ", keys " << shape_.keys
          << ", head_dim " << shape_.head_dim << ", value_dim " << shape_.value_dim << ", column "
          << d;
      std::memcpy(gaps.at(query, d), untouched.at(query, d), static_cast<size_t>(out_.value_bytes));
    }
  }
  ASSERT_EQ(gaps.bytes, untouched.bytes) << "written beyond a row of the output";
}

}  // namespace attendant::cpu
