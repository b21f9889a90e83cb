// SPDX-License-Identifier: Apache-2.0
#include "server/models/warm_up.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "kernels/core/packed_batch.h"

namespace attendant {
namespace {

// Takes batches within its limits, and remembers their sizes.
class RecordingSession final : public Session {
 public:
  explicit RecordingSession(const SessionLimits& limits) : limits_(limits) {}

  absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs&) override {
    sizes.emplace(batch.batch(), batch.tokens());
    for (int64_t i = 0; i < batch.batch(); ++i) longest = std::max(longest, batch.len(i));
    return CheckSessionLimits(batch, spec, limits_);
  }

  std::set<std::pair<int64_t, int64_t>> sizes;  // sequences, tokens
  int64_t longest = 0;

 private:
  const SessionLimits limits_;
};

struct LimitsCase {
  SessionLimits limits;
  int64_t max_sequence_tokens;
};

class WarmUpTest : public testing::TestWithParam<LimitsCase> {};

TEST_P(WarmUpTest, StaysWithinTheLimitsAndReachesThem) {
  const auto& [limits, max_len] = GetParam();
  RecordingSession session(limits);
  ASSERT_TRUE(WarmUp(session, limits, max_len).ok());
  EXPECT_TRUE(session.sizes.contains({1, 1}));
  const absl::StatusOr<CostModel> cost = MeasureCost(session, limits, max_len);
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_TRUE(cost->fitted());
  EXPECT_EQ(session.longest, max_len);
  const auto fuller = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto fullest = std::max_element(session.sizes.begin(), session.sizes.end(), fuller);
  EXPECT_GE(2 * fullest->second,
            std::min(limits.max_batch_tokens, limits.max_batch_sequences * max_len));
}

INSTANTIATE_TEST_SUITE_P(Table, WarmUpTest,
                         testing::Values(LimitsCase{{1024, 256}, 512}, LimitsCase{{48, 8}, 48},
                                         LimitsCase{{16, 1}, 16}, LimitsCase{{1024, 1}, 512},
                                         LimitsCase{{16384, 1024}, 128}, LimitsCase{{17, 3}, 5}));

// Gives states of one token, with `value` as the last of two.
class OneStateSession final : public Session {
 public:
  explicit OneStateSession(float value) : state_{1, value} {}

  absl::Status Run(const PackedBatch&, const OutputSpec&, Outputs& outputs) override {
    outputs.last_hidden_state = {state_, {1, 2}};
    return absl::OkStatus();
  }

 private:
  const float state_[2];
};

TEST(FiniteStatesTest, StatesThatAreNotFiniteAreRefused) {
  const SessionLimits limits{.max_batch_tokens = 64, .max_batch_sequences = 2};
  OneStateSession finite(std::numeric_limits<float>::max());
  EXPECT_TRUE(WarmUp(finite, limits, 8).ok());
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    OneStateSession session(value);
    const absl::Status status = WarmUp(session, limits, 8);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(status.message(),
              "the last states of token 0 are not finite: the weights overflow this number format, "
              "or are not finite");
  }
}

// Takes 10 us of its own clock, but every other time of a shape something holds it up.
class DisturbedSession final : public Session {
 public:
  absl::Status Run(const PackedBatch& batch, const OutputSpec&, Outputs&) override {
    const bool disturbed = ++runs_[{batch.batch(), batch.tokens()}] % 2 == 1;
    now += absl::Microseconds(disturbed ? 5000 : 10);
    return absl::OkStatus();
  }

  absl::Time now = absl::UnixEpoch();

 private:
  std::map<std::pair<int64_t, int64_t>, int> runs_;  // by sequences and tokens
};

TEST(MeasureCostTest, TheLeastTimeOfAShapeCounts) {
  DisturbedSession session;
  const absl::StatusOr<CostModel> cost =
      MeasureCost(session, {.max_batch_tokens = 256, .max_batch_sequences = 8}, 64,
                  [&session] { return session.now; });
  ASSERT_TRUE(cost.ok()) << cost.status();
  BatchShape shape;
  for (int i = 0; i < 4; ++i) shape.Add(64);
  EXPECT_LT(cost->Estimate(shape), absl::Milliseconds(2));
}

// Takes 20 us of a test's clock for each token, and makes labels of tokens.
class SlowHead final : public Head {
 public:
  explicit SlowHead(absl::Time& now) : now_(now) {}
  bool Makes(TaskKind kind) const override { return kind == TaskKind::kTokenScores; }
  ResultSize MaxResult(const TaskOptions&, std::span<const int32_t>) const override { return {}; }
  absl::StatusOr<std::unique_ptr<HeadRunner>> NewRunner(const SessionLimits&, int) const override {
    return std::make_unique<Runner>(now_);
  }
  int64_t weight_bytes() const override { return 0; }

 private:
  class Runner final : public HeadRunner {
   public:
    explicit Runner(absl::Time& now) : now_(now) {}
    absl::Status Run(std::span<const HeadInput> inputs, ThreadPool&) override {
      if (inputs[0].options->kind != TaskKind::kTokenScores) return absl::InternalError("kind");
      now_ += absl::Microseconds(20 * inputs[0].states.dim(0));
      return absl::OkStatus();
    }
    int64_t arena_bytes() const override { return 0; }

   private:
    absl::Time& now_;
  };

  absl::Time& now_;
};

TEST(MeasureHeadsTest, IsTheTimeOfAToken) {
  absl::Time now = absl::UnixEpoch();
  std::vector<std::unique_ptr<const Head>> heads;
  heads.push_back(std::make_unique<const SlowHead>(now));
  const SessionLimits limits{.max_batch_tokens = 64, .max_batch_sequences = 2};
  std::vector<std::unique_ptr<HeadRunner>> runners;
  runners.push_back(*heads[0]->NewRunner(limits, 1));
  ThreadPool pool(1);
  const auto row_ns = MeasureHeads(heads, runners, limits, 4, pool, [&now] { return now; });
  ASSERT_TRUE(row_ns.ok()) << row_ns.status();
  ASSERT_EQ(row_ns->size(), 1u);
  EXPECT_EQ(row_ns->front(), 20'000);
}

TEST(MeasureCostTest, AFailingSessionIsAnError) {
  RecordingSession session({.max_batch_tokens = 8, .max_batch_sequences = 1});
  const SessionLimits wider{.max_batch_tokens = 64, .max_batch_sequences = 8};
  EXPECT_TRUE(absl::IsInvalidArgument(MeasureCost(session, wider, 64).status()));
}

}  // namespace
}  // namespace attendant
