// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/attention/compare_case.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "kernels/attention/values.h"

namespace attendant::bench {

using attention::Call;
using attention::InputRows;
using attention::Kind;
using attention::Sequences;

namespace {

std::vector<std::byte> RandomOperand(DType dtype, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> values(static_cast<size_t>(count * attention::ValueBytes(dtype)));
  for (int64_t i = 0; i < count; ++i) {
    attention::WriteValue(values.data(), dtype, i, normal(random));
  }
  return values;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompareCase>> CompareCase::Create(Kind kind,
                                                                 const CompareShape& shape) {
  auto result = std::unique_ptr<CompareCase>(new CompareCase(shape));
  result->call_.kind = kind;
  const absl::StatusOr<const cpu::IsaLevel*> isa = attention::FindIsa("auto");
  if (!isa.ok()) return isa.status();
  result->call_.isa = *isa;
  result->MakeOperands();
  if (kind == Kind::kMultiHead) {
    if (absl::Status status = result->MakeMultiHead(); !status.ok()) return status;
  }
  result->SetParameters();
  if (absl::Status status = attention::Measure(result->call_, 1).status(); !status.ok()) {
    return status;
  }
  return result;
}

attention::Outputs CompareCase::OutputsTo(float* weights) {
  const bool split = call_.kind != Kind::kMultiHead;
  return {.out = attention::OutputRows::TokensFirst(
              out_.data(), split ? shape_.heads : 1,
              split ? shape_.head_dim : shape_.heads * shape_.head_dim, shape_.len),
          .attention_weights = weights};
}

void CompareCase::MakeOperands() {
  const int64_t hidden = shape_.heads * shape_.head_dim, count = shape_.batch * shape_.len * hidden;
  query_ = RandomOperand(shape_.dtype, count, 1);
  key_ = RandomOperand(shape_.dtype, count, 2);
  value_ = RandomOperand(shape_.dtype, count, 3);
  out_.assign(query_.size(), std::byte{0});
  const bool split = call_.kind != Kind::kMultiHead;  // which splits the heads itself
  const int64_t heads = split ? shape_.heads : 1, dim = split ? shape_.head_dim : hidden;
  call_.dtype = shape_.dtype;
  call_.queries = call_.keys = Sequences::Dense(shape_.batch, shape_.len);
  call_.query = InputRows::TokensFirst(query_.data(), heads, dim, shape_.len);
  call_.key = InputRows::TokensFirst(key_.data(), heads, dim, shape_.len);
  call_.value = InputRows::TokensFirst(value_.data(), heads, dim, shape_.len);
}

const float* CompareCase::Random(int64_t count, float deviation) {
  std::mt19937 random(static_cast<uint32_t>(values_.size()) + 10);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float>& values = values_.emplace_back(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values.data();
}

void CompareCase::AddParameter(const char* name, int64_t rows, int64_t columns) {
  const float deviation = 1 / std::sqrt(static_cast<float>(columns));
  parameters_.push_back({name, {Random(rows * columns, deviation), {rows, columns}}});
  call_.parameters = parameters_;
}

void CompareCase::SetParameters() {
  const int64_t dim = shape_.head_dim;  // also the units of a tanh
  const int64_t projected = std::min(shape_.projected, shape_.len);
  switch (call_.kind) {
    case Kind::kDotProduct:  // without its weights it is flash attention
      call_.need_weights = attention::WeightsWanted::kPerHead;
      return;
    case Kind::kAdditive:
      AddParameter("query_weight", dim, dim);
      AddParameter("key_weight", dim, dim);
      return AddParameter("score_weight", 1, dim);
    case Kind::kLuongGeneral:
      return AddParameter("weight", dim, dim);
    case Kind::kLuongConcat:
      AddParameter("weight", dim, 2 * dim);
      return AddParameter("score_weight", 1, dim);
    case Kind::kLocal:
      call_.mask.window = shape_.window;
      return;
    case Kind::kLinformer:
      AddParameter("key_projection", projected, shape_.len);
      return AddParameter("value_projection", projected, shape_.len);
    default:
      return;
  }
}

absl::Status CompareCase::MakeMultiHead() {
  const int64_t hidden = shape_.heads * shape_.head_dim;
  const auto linear = [&] {
    const float deviation = 1 / std::sqrt(static_cast<float>(hidden));
    LinearWeights weights;
    weights.weight = {Random(hidden * hidden, deviation), {hidden, hidden}};
    weights.bias = {Random(hidden, deviation), {hidden}};
    return weights;
  };
  ModuleWeights weights;
  weights.attention = {linear(), linear(), linear(), linear()};
  absl::StatusOr<std::unique_ptr<const attention::Module>> module =
      attention::MakeModule({.type = ModuleType::kMultiHead,
                             .heads = shape_.heads,
                             .hidden = hidden,
                             .key_dim = hidden,
                             .value_dim = hidden},
                            std::move(weights), shape_.dtype, call_.isa);
  if (!module.ok()) return module.status();
  module_ = *std::move(module);
  call_.module = module_.get();
  return absl::OkStatus();
}

}  // namespace attendant::bench
