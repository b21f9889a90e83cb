// SPDX-License-Identifier: Apache-2.0
// A head's runner allocates on the calling thread alone, where memory that runs out is an error of
// the batch and not the end of the process. And only its results: where they have room, nothing.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/backends/heads.h"
#include "kernels/core/threads/thread_pool.h"
#include "tests/support/backends.h"
#include "tests/support/call_counter.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

constexpr SessionLimits kLimits{.max_batch_tokens = 1024, .max_batch_sequences = 64};
constexpr int kThreads = 3;
constexpr int32_t kMaskId = 4;
constexpr EncoderConfig kConfig{.layers = 1,
                                .heads = 4,
                                .hidden = 128,
                                .ffn = 128,
                                .vocab = 101,
                                .max_positions = 64,
                                .segment_types = 2,
                                .layer_norm_epsilon = 1e-12f};

struct HeadCase {
  const char* name;
  TokenHeadKind kind;
  int64_t outputs;
  TaskOptions options;
  TokenHeadOptions head_options{};
};

// Vocabularies of several slices.
const std::vector<HeadCase> kHeads = {
    {"sparse",
     TokenHeadKind::kMaskedLm,
     3000,
     {.kind = TaskKind::kSparse},
     {.splade = SpladeOptions{}}},
    {"largest of sparse sums",
     TokenHeadKind::kMaskedLm,
     3000,
     {.kind = TaskKind::kSparse, .top_k = 20},
     {.splade = SpladeOptions{.sum = true}}},
    {"masks", TokenHeadKind::kMaskedLm, 3000, {.kind = TaskKind::kFillMask}, {.mask_id = kMaskId}},
    {"labels", TokenHeadKind::kTokenLabels, 7, {.kind = TaskKind::kTokenScores}},
    {"weights", TokenHeadKind::kTokenWeights, 1, {.kind = TaskKind::kSparse}, {.ignored_ids = {0}}},
    {"vectors",
     TokenHeadKind::kVectors,
     48,
     {.kind = TaskKind::kMultiVector, .document = true},
     {.ignored_ids = {0}, .skip_first = true}},
};

std::vector<float> RandomFloats(int64_t count) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

// 16 sequences of 64 tokens, some of them masks, and their random states.
class Batch {
 public:
  Batch() : states_(RandomFloats(kLimits.max_batch_tokens * kConfig.hidden)) {
    sequences_ = RandomSequences(kConfig, std::vector<int64_t>(16, kLen), 3);
    for (TestSequence& sequence : sequences_) sequence.token_ids[5] = kMaskId;
  }

  // With empty results; or, of `head`, with results that have room for all that it makes.
  std::vector<HeadInput> Inputs(const TaskOptions& options, const Head* head) {
    results_.assign(sequences_.size(), {});
    std::vector<HeadInput> inputs;
    for (size_t i = 0; i < sequences_.size(); ++i) {
      const std::vector<int32_t>& ids = sequences_[i].token_ids;
      if (head != nullptr) {
        const auto values = static_cast<size_t>(head->MaxResult(options, ids).values);
        results_[i].values.reserve(values);
        results_[i].indices.reserve(values);
        results_[i].tokens.reserve(ids.size());
      }
      const float* states = states_.data() + static_cast<int64_t>(i) * kLen * kConfig.hidden;
      inputs.push_back({.options = &options,
                        .token_ids = ids,
                        .states = {states, {kLen, kConfig.hidden}},
                        .result = &results_[i]});
    }
    return inputs;
  }
  const std::vector<HeadResult>& results() const { return results_; }

 private:
  static constexpr int64_t kLen = 64;

  std::vector<float> states_;
  std::vector<TestSequence> sequences_;
  std::vector<HeadResult> results_;
};

void ExpectNoAllocations(const HeadCase& head_case, const PreparedEncoder& encoder) {
  const int64_t hidden = kConfig.hidden;
  const std::vector<float> floats = RandomFloats(head_case.outputs * hidden);
  TokenHead weights{.kind = head_case.kind, .norm_epsilon = 1e-5f};
  weights.out.weight = {floats.data(), {head_case.outputs, hidden}};
  weights.options = head_case.head_options;
  if (head_case.kind == TokenHeadKind::kMaskedLm) {
    weights.dense.weight = {floats.data(), {hidden, hidden}};
    weights.norm = {.gamma = {floats.data(), {hidden}}, .beta = {floats.data(), {hidden}}};
  }
  const auto head = MakeHead(weights, encoder);
  ASSERT_TRUE(head.ok()) << head.status();
  const auto runner = (*head)->NewRunner(kLimits, kThreads);
  ASSERT_TRUE(runner.ok()) << runner.status();
  std::latch started(kThreads - 1);
  ThreadPool pool(kThreads, [&started] { started.count_down(); });
  started.wait();
  Batch batch;
  for (const bool with_room : {false, true}) {
    const std::vector<HeadInput> inputs =
        batch.Inputs(head_case.options, with_room ? head->get() : nullptr);
    absl::Status status;
    const CallCounter counter;
    status = (*runner)->Run(inputs, pool);
    const CallCounts counts = counter.counts();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(counts.worker_allocations, 0);
    EXPECT_EQ(counts.locks, 0);
    EXPECT_EQ(counts.primitives, 0);
    if (with_room) {
      EXPECT_EQ(counts.allocations, 0);
    }
    for (const HeadResult& result : batch.results()) EXPECT_FALSE(result.values.empty());
  }
}

TEST(HeadsNoAllocationTest, OnlyTheCallerAllocatesAndOnlyResults) {
  for (const NamedBackend& named : AvailableBackends()) {
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      if (named.backend->name() != "cpu" || !named.backend->Supports(dtype).ok()) continue;
      const auto encoder = named.backend->Prepare(kConfig, RandomWeights(kConfig, 7), dtype);
      ASSERT_TRUE(encoder.ok()) << encoder.status();
      for (const HeadCase& head_case : kHeads) {
        SCOPED_TRACE(named.name + " " + std::string(DTypeName(dtype)) + " " + head_case.name);
        ExpectNoAllocations(head_case, **encoder);
      }
    }
  }
}

}  // namespace
}  // namespace attendant
