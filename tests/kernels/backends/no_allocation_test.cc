// SPDX-License-Identifier: Apache-2.0
// After it has run once, a session allocates nothing, takes no lock and makes no primitive, on none
// of its threads, whatever the next batches look like.
//
// With one exception where oneDNN computes the matmuls (matmul.h says where), which is oneDNN's
// and counted by itself: dnnl_primitive_execute copies the caller's few arguments into a hash map
// and frees it before it returns. These are its nodes and its table, some 50 bytes each, which the
// allocator serves from the thread's own cache, without a lock: 0.1 us of a matmul that takes 10
// us or more.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "kernels/core/threads/thread_pool.h"
#include "kernels/cpu/matmul/onednn_matmul.h"
#include "tests/support/backends.h"
#include "tests/support/call_counter.h"
#include "tests/support/checkpoint.h"

namespace attendant {

void PrintTo(const CallCounts& counts, std::ostream* out) {
  *out << counts.allocations << " allocations, " << counts.locks << " locks, " << counts.primitives
       << " primitives, " << counts.execute_allocations << " allocations in " << counts.executions
       << " executions";
}

namespace {

constexpr SessionLimits kLimits{.max_batch_tokens = 1024, .max_batch_sequences = 64};
// The second layer has experts.
constexpr EncoderConfig kConfig{.layers = 2,
                                .heads = 4,
                                .hidden = 128,
                                .ffn = 512,
                                .vocab = 101,
                                .max_positions = 512,
                                .segment_types = 2,
                                .layer_norm_epsilon = 1e-12f,
                                .experts = 4,
                                .experts_per_token = 2,
                                .expert_layers{0b10}};

// Widths that our own tiles do not take in bf16, but on AMX: oneDNN's are used.
constexpr EncoderConfig kOddConfig{.layers = 2,
                                   .heads = 3,
                                   .hidden = 129,
                                   .ffn = 515,
                                   .vocab = 101,
                                   .max_positions = 512,
                                   .segment_types = 2,
                                   .layer_norm_epsilon = 1e-12f,
                                   .experts = 4,
                                   .experts_per_token = 2,
                                   .expert_layers{0b10}};

// One row, one tile, several blocks, many sequences, one long among short ones, a full batch.
const std::vector<std::vector<int64_t>> kBatches = {
    {1},        {16},           {300}, std::vector<int64_t>(64, 7), {2, 500, 3, 17, 1, 80},
    {512, 512}, {129, 130, 131}};

// The entries of a matmul's argument map: two operands, weight, bias, scratchpad, and its table.
constexpr int64_t kArguments = 7;

// A batch and all that it asks for, made before anything is counted.
struct Work {
  PackedBatch batch;
  std::vector<SequenceOutputs> wanted;  // [batch]
  std::vector<LayerOutputs> layers;     // [batch]
  std::vector<float> inner;             // what `layers` writes

  Work(const EncoderConfig& config, const std::vector<int64_t>& lens, bool look_inside) {
    for (const TestSequence& sequence : RandomSequences(config, lens, 3)) {
      batch.Append(sequence.token_ids, sequence.positions, sequence.segment_ids);
    }
    static constexpr Pooling kPoolings[] = {Pooling::kCls, Pooling::kMean, Pooling::kMax,
                                            Pooling::kLast, Pooling::kNone};
    for (size_t i = 0; i < lens.size(); ++i) {  // the last states of one, all or no tokens
      wanted.push_back(
          {.last_hidden_state = i % 10 == 4, .pooling = kPoolings[i % 5], .normalize = i % 2 == 0});
    }
    if (look_inside) LookInside(config, lens);
  }

  absl::Status Run(Session& session) const {
    Outputs outputs;
    return session.Run(batch, {.sequences = wanted, .layers = layers}, outputs);
  }

 private:
  void LookInside(const EncoderConfig& config, const std::vector<int64_t>& lens) {
    static constexpr int32_t kAll[] = {0, 1, 2, 3};
    const auto all = std::span<const int32_t>(kAll);
    const auto heads = all.first(static_cast<size_t>(config.heads));
    int64_t floats = 0;
    for (int64_t len : lens) floats += 2 * config.heads * len * len + 3 * len * config.hidden;
    inner.resize(static_cast<size_t>(floats));
    float* next = inner.data();
    for (int64_t len : lens) {
      float* const states = next + 2 * config.heads * len * len;
      layers.push_back({all.first(2), heads, next, all.first(3), states});
      next = states + 3 * len * config.hidden;
    }
  }
};

class NoAllocationTest : public testing::TestWithParam<std::tuple<int, DType, bool>> {};

TEST_P(NoAllocationTest, AfterTheFirstRun) {
  const auto [threads, dtype, is_odd] = GetParam();
  const EncoderConfig& config = is_odd ? kOddConfig : kConfig;
  for (const NamedBackend& named : AvailableBackends()) {
    // The reference allocates; what a GPU's driver does of its own is not ours to count
    // (engine_test.cc counts what we ask of it).
    if (named.backend->name() != "cpu" || !named.backend->Supports(dtype).ok()) continue;
    SCOPED_TRACE(named.name);
    const auto encoder = named.backend->Prepare(config, RandomWeights(config, 7), dtype);
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    const auto session = (*encoder)->NewSession(kLimits, threads);
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE(Work(config, {40}, false).Run(**session).ok());
    const bool onednn = (*encoder)->info().matmul_implementation.find("brg") != std::string::npos;
    EXPECT_EQ(onednn, is_odd && dtype == DType::kBf16 && named.name != "cpu/amx")
        << (*encoder)->info().matmul_implementation;
    for (const auto& lens : kBatches) {
      for (bool look_inside : {false, true}) {
        SCOPED_TRACE(testing::PrintToString(lens) + (look_inside ? " with inner layers" : ""));
        const Work work(config, lens, look_inside);
        absl::Status status;
        const CallCounter counter;
        status = work.Run(**session);
        const CallCounts counts = counter.counts();
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(counts.allocations, 0);
        EXPECT_EQ(counts.locks, 0);
        EXPECT_EQ(counts.primitives, 0);
        if (onednn) {
          EXPECT_GE(counts.executions, 4 * config.layers);
          EXPECT_LE(counts.execute_allocations, kArguments * counts.executions);
        } else {
          EXPECT_EQ(counts.executions, 0);
          EXPECT_EQ(counts.execute_allocations, 0);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, NoAllocationTest,
                         testing::Combine(testing::Values(1, 3),
                                          testing::Values(DType::kF32, DType::kBf16, DType::kInt8),
                                          testing::Bool()),
                         [](const auto& parameter) {
                           const auto dtype = std::get<1>(parameter.param);
                           return std::string(DTypeName(dtype)) + "_" +
                                  std::to_string(std::get<0>(parameter.param)) +
                                  (std::get<2>(parameter.param) ? "_odd" : "");
                         });

// What the counter would see, on the caller and on workers.
TEST(CallCounterTest, CountsOnEveryThread) {
  ThreadPool pool(3);
  std::mutex mutex;
  {
    const CallCounter counter;
    pool.ParallelFor(1000, [&](int64_t, int) {});
    EXPECT_EQ(counter.counts(), CallCounts{}) << "the pool itself";
  }
  {
    const CallCounter counter;
    pool.ParallelFor(100, [&](int64_t index, int) {
      const std::lock_guard lock(mutex);
      // volatile: compilers remove an allocation that nobody looks at.
      char* volatile plain = new char[static_cast<size_t>(index + 1)];
      void* volatile aligned = std::aligned_alloc(64, 64);
      delete[] plain;
      std::free(aligned);
    });
    const CallCounts counts = counter.counts();
    EXPECT_EQ(counts.allocations, 200);
    EXPECT_EQ(counts.locks, 100);
    EXPECT_EQ(counts.primitives, 0);
  }
  {
    const CallCounter counter;
    const auto matmul =
        cpu::OneDnnMatmul::Create({.dtype = DType::kF32, .k = 64, .n = 64, .max_rows = 16});
    const CallCounts counts = counter.counts();
    EXPECT_EQ(counts.primitives, 1);
    EXPECT_GT(counts.locks, 0) << "oneDNN's cache of primitives";
    EXPECT_GT(counts.allocations, 0);
  }
  const CallCounts after = CallCounter().counts();
  EXPECT_EQ(after, CallCounts{});
}

}  // namespace
}  // namespace attendant
