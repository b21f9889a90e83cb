// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/cuda/kernels/attention_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>

namespace attendant::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kUntouched = 77;
constexpr int64_t kMaxPositions = 512;

std::vector<int64_t> StartsOf(const std::vector<int64_t>& lens) {
  std::vector<int64_t> starts = {0};
  for (int64_t len : lens) starts.push_back(starts.back() + len);
  return starts;
}

}  // namespace

std::string AttentionShape::Describe() const {
  std::ostringstream text;
  text << DTypeName(dtype) << " heads " << heads << " head_dim " << head_dim << " queries";
  for (int64_t count : queries) text << " " << count;
  for (int64_t count : keys) text << " keys " << count;
  text << " before " << rule.keys_before << " after " << rule.keys_after << (bias ? " bias" : "")
       << (allowed ? " allowed" : "") << (one_mask_row ? " one row" : "") << " heads per key "
       << heads_per_key << (distances ? " distances" : "") << (gaps ? " gaps" : "")
       << (distance_scores ? " scores" : "");
  return text.str();
}

AttentionProblem::AttentionProblem(const AttentionShape& shape)
    : shape_(shape),
      query_starts_(StartsOf(shape.queries)),
      key_starts_(StartsOf(shape.keys.empty() ? shape.queries : shape.keys)),
      hidden_(shape.heads * shape.head_dim),
      stride_(3 * hidden_),
      q_(shape.dtype, static_cast<size_t>(query_starts_.back() * stride_), NAN),
      k_(shape.dtype, static_cast<size_t>(key_starts_.back() * stride_), NAN),
      v_(shape.dtype, static_cast<size_t>(key_starts_.back() * stride_), NAN) {
  // q has the first columns of its rows, k and v the others of theirs; all else is NaN.
  std::mt19937 random(shape.seed);
  std::normal_distribution<float> normal;
  const auto fill = [&](DeviceValues& values, int64_t first, float deviation) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto column = static_cast<int64_t>(i) % stride_;
      if (column >= first && column < first + hidden_) values.Set(i, normal(random) * deviation);
    }
  };
  fill(q_, 0, shape.deviation);
  fill(k_, hidden_, shape.deviation);
  fill(v_, 2 * hidden_, 1);

  mask_starts_ = {0};
  for (size_t s = 0; s < shape.queries.size(); ++s) {
    const int64_t keys = key_starts_[s + 1] - key_starts_[s];
    mask_starts_.push_back(mask_starts_.back() +
                           keys * (shape.one_mask_row ? 1 : shape.queries[s]));
  }
  for (size_t s = 0; s < shape.queries.size(); ++s) {
    for (int64_t i = 0; i < shape.queries[s]; ++i) {
      const int64_t position = shape.gaps && s % 2 == 0 ? i + i / 3 : i;
      positions_.push_back(static_cast<int32_t>(position));
    }
  }
  for (int64_t i = 0; shape.distance_scores && i < shape.heads * (2 * kMaxPositions - 1); ++i) {
    distance_scores_.push_back(normal(random) * 2);
  }
  const auto mask_size = static_cast<size_t>(mask_starts_.back());
  for (size_t i = 0; shape.bias && i < mask_size; ++i) {
    bias_.push_back(random() % 4 == 0 ? -kInfinity : normal(random) * 2);
  }
  for (size_t i = 0; shape.allowed && i < mask_size; ++i) {
    allowed_.push_back(random() % 3 == 0 ? 0 : static_cast<uint8_t>(random() % 255 + 1));
  }
}

void AttentionProblem::Fill(size_t sequence, float value) {
  const auto fill = [&](DeviceValues& values, const std::vector<int64_t>& starts) {
    for (int64_t i = starts[sequence] * stride_; i < starts[sequence + 1] * stride_; ++i) {
      values.Set(static_cast<size_t>(i), value);
    }
  };
  fill(q_, query_starts_);
  fill(k_, key_starts_);
  fill(v_, key_starts_);
}

void AttentionProblem::CopySequence(const AttentionProblem& other, size_t from, size_t to) {
  const auto copy = [&](const DeviceValues& source, const std::vector<int64_t>& source_starts,
                        DeviceValues& values, const std::vector<int64_t>& starts) {
    for (int64_t i = 0; i < (starts[to + 1] - starts[to]) * stride_; ++i) {
      values.Set(static_cast<size_t>(starts[to] * stride_ + i),
                 source.Get(static_cast<size_t>(source_starts[from] * stride_ + i)));
    }
  };
  copy(other.q_, other.query_starts_, q_, query_starts_);
  copy(other.k_, other.key_starts_, k_, key_starts_);
  copy(other.v_, other.key_starts_, v_, key_starts_);
}

DeviceVector<AttentionTask> AttentionProblem::Tasks() const {
  if (shape_.keys.empty()) {
    DeviceVector<AttentionTask> tasks(static_cast<size_t>(
        MaxAttentionTasks(query_rows(), static_cast<int64_t>(shape_.queries.size()))));
    tasks.resize(static_cast<size_t>(
        PlanSelfAttention({.seq_starts = query_starts_, .positions = positions_.data()}, tasks)));
    return tasks;
  }
  DeviceVector<AttentionTask> tasks;
  for (size_t s = 0; s < shape_.queries.size(); ++s) {
    for (int64_t begin = 0; begin < shape_.queries[s]; begin += kTaskQueries) {
      tasks.push_back({static_cast<int32_t>(s), static_cast<int32_t>(query_starts_[s]),
                       static_cast<int32_t>(shape_.queries[s]),
                       static_cast<int32_t>(key_starts_[s]), static_cast<int32_t>(shape_.keys[s]),
                       static_cast<int32_t>(begin)});
    }
  }
  return tasks;
}

std::vector<float> AttentionProblem::Run() {
  // The launch has room for more tasks than there are; those beyond the count are nonsense.
  DeviceVector<AttentionTask> tasks = Tasks();
  DeviceVector<BatchCounts> counts(1);
  counts[0].attention_tasks = static_cast<int32_t>(tasks.size());
  tasks.insert(tasks.end(), 3, AttentionTask{1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 0});

  const int64_t context_stride = hidden_ + 8;
  DeviceValues context(shape_.dtype, static_cast<size_t>(query_rows() * context_stride),
                       kUntouched);
  AttentionArgs args = {};
  args.q = q_.data();
  args.k = k_.at(hidden_);
  args.v = v_.at(2 * hidden_);
  args.context = context.data();
  args.q_stride = args.k_stride = args.v_stride = stride_;
  args.context_stride = context_stride;
  args.scale = 1 / std::sqrt(static_cast<float>(shape_.head_dim));
  args.rule = shape_.rule;
  args.heads_per_key = static_cast<int32_t>(shape_.heads_per_key);
  if (shape_.distances) args.distance.positions = positions_.data();
  if (shape_.distance_scores) {
    args.distance.scores = distance_scores_.data() + kMaxPositions - 1;
    args.distance.stride = 2 * kMaxPositions - 1;
  }
  args.tasks = tasks.data();
  if (shape_.bias || shape_.allowed) args.mask_starts = mask_starts_.data();
  // Rows' strides are the same for all sequences, so those with more rows than one are alone.
  const int64_t mask_stride = shape_.one_mask_row ? 0 : key_starts_[1];
  args.bias = shape_.bias ? bias_.data() : nullptr;
  args.bias_stride = mask_stride;
  args.allowed = shape_.allowed ? allowed_.data() : nullptr;
  args.allowed_stride = mask_stride;

  const Stream stream;
  EXPECT_EQ(PrepareAttention(shape_.dtype, shape_.head_dim), cudaSuccess);
  EXPECT_EQ(LaunchAttention(shape_.dtype, args, counts.data(), static_cast<int64_t>(tasks.size()),
                            shape_.heads, shape_.head_dim, stream),
            cudaSuccess);
  stream.Wait();
  std::vector<float> result;
  for (int64_t i = 0; i < query_rows() * context_stride; ++i) {
    const float value = context.Get(static_cast<size_t>(i));
    if (i % context_stride < hidden_) {
      result.push_back(value);
    } else {
      EXPECT_EQ(value, kUntouched);
    }
  }
  return result;
}

int64_t AttentionProblem::Distance(size_t sequence, int64_t i, int64_t j) const {
  if (!shape_.distances) return j - i;
  const auto at = [&](int64_t row) {
    return int64_t{positions_[static_cast<size_t>(query_starts_[sequence] + row)]};
  };
  return at(j) - at(i);
}

float AttentionProblem::Score(size_t sequence, int64_t head, int64_t i, int64_t j) const {
  const int64_t distance = Distance(sequence, i, j);
  if (-distance > shape_.rule.keys_before || distance > shape_.rule.keys_after) return -kInfinity;
  const int64_t row =
      shape_.one_mask_row ? 0 : i * (key_starts_[sequence + 1] - key_starts_[sequence]);
  const auto mask = static_cast<size_t>(mask_starts_[sequence] + row + j);
  if (shape_.allowed && allowed_[mask] == 0) return -kInfinity;
  const auto q =
      static_cast<size_t>((query_starts_[sequence] + i) * stride_ + head * shape_.head_dim);
  const auto k = static_cast<size_t>((key_starts_[sequence] + j) * stride_ + hidden_ +
                                     head / shape_.heads_per_key * shape_.head_dim);
  double score = 0;
  for (size_t d = 0; d < static_cast<size_t>(shape_.head_dim); ++d) {
    score += static_cast<double>(q_.Get(q + d)) * k_.Get(k + d);
  }
  score /= std::sqrt(static_cast<double>(shape_.head_dim));
  if (shape_.distance_scores) {
    score += distance_scores_[static_cast<size_t>((2 * kMaxPositions - 1) * head + kMaxPositions -
                                                  1 + distance)];
  }
  return static_cast<float>(shape_.bias ? score + bias_[mask] : score);
}

std::vector<AttentionProblem::Expected> AttentionProblem::Compute() const {
  std::vector<Expected> context(static_cast<size_t>(query_rows() * hidden_), {0, 0});
  for (size_t s = 0; s < shape_.queries.size(); ++s) {
    const int64_t keys = key_starts_[s + 1] - key_starts_[s];
    for (int64_t i = 0; i < shape_.queries[s]; ++i) {
      for (int64_t head = 0; head < shape_.heads; ++head) {
        std::vector<double> weights;
        for (int64_t j = 0; j < keys; ++j) weights.push_back(Score(s, head, i, j));
        const double largest =
            weights.empty() ? 0 : *std::max_element(weights.begin(), weights.end());
        if (largest == -kInfinity) continue;
        double sum = 0;
        for (double& weight : weights) sum += weight = std::exp(weight - largest);
        for (int64_t j = 0; j < keys; ++j) {
          for (int64_t d = 0; d < shape_.head_dim; ++d) {
            const double term =
                weights[static_cast<size_t>(j)] / sum *
                v_.Get(static_cast<size_t>((key_starts_[s] + j) * stride_ + 2 * hidden_ +
                                           head / shape_.heads_per_key * shape_.head_dim + d));
            Expected& out = context[static_cast<size_t>((query_starts_[s] + i) * hidden_ +
                                                        head * shape_.head_dim + d)];
            out.value += term;
            out.terms += std::abs(term);
          }
        }
      }
    }
  }
  return context;
}

void ExpectAttention(AttentionProblem& problem, double tolerance) {
  SCOPED_TRACE(problem.shape().Describe());
  const std::vector<AttentionProblem::Expected> expected = problem.Compute();
#ifdef ATTENDANT_CUDA_EMULATED
  cuda_emulation::TakeStatistics();
#endif
  const std::vector<float> context = problem.Run();
#ifdef ATTENDANT_CUDA_EMULATED
  EXPECT_EQ(cuda_emulation::TakeStatistics().matrix_load_conflicts, 0);
#endif
  ASSERT_EQ(context.size(), expected.size());
  // Powers and the result are rounded, and f32 sums of many terms err as well.
  const double step = tolerance * RoundingOf(problem.shape().dtype) + 1e-6;
  for (size_t i = 0; i < context.size(); ++i) {
    ASSERT_NEAR(context[i], expected[i].value, step * expected[i].terms) << "number " << i;
  }
  InOtherOrders([&] { EXPECT_EQ(problem.Run(), context) << "in another order"; });
  if (problem.shape().dtype == DType::kF32) return;
  OnGroupMatmuls([&] { EXPECT_EQ(problem.Run(), context) << "by matmuls of groups"; });
}

}  // namespace attendant::cuda
