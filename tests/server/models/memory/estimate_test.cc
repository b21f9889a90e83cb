// SPDX-License-Identifier: Apache-2.0
#include "server/models/memory/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/backends/backends.h"
#include "server/metrics/server_metrics.h"
#include "server/models/encoder_model.h"
#include "server/models/model_loader.h"
#include "server/task_pool.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

// Large enough for its weights to be more than noise: 44 MiB of f32.
constexpr EncoderConfig kConfig{.layers = 4,
                                .heads = 6,
                                .hidden = 384,
                                .ffn = 1536,
                                .vocab = 12000,
                                .max_positions = 256,
                                .segment_types = 2,
                                .layer_norm_epsilon = 1e-12f,
                                .activation = Activation::kGeluErf};

// Memory of this process that is not a file's.
int64_t AnonymousBytes() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    int64_t kib = 0;
    if (word == "RssAnon:" && file >> kib) return kib * 1024;
  }
  return -1;
}

ModelOptions MakeOptions(DType dtype, std::vector<ThreadTeam> replicas) {
  ModelOptions options;
  options.dtype = std::string(DTypeName(dtype));
  options.replicas = std::move(replicas);
  options.batcher.max_batch_tokens = 1024;
  options.batcher.max_batch_sequences = 256;
  options.batcher.max_queued_tokens = 1 << 16;
  options.batcher.max_queued_requests = 16;
  return options;
}

class EstimateTest : public testing::TestWithParam<DType> {};

TEST_P(EstimateTest, IsNearWhatTheProcessGrowsBy) {
#ifdef ATTENDANT_SANITIZED
  GTEST_SKIP() << "a sanitizer keeps memory of its own";
#endif
  const auto backend = MakeBackend("cpu", {.load_threads = 2});
  if (!backend.ok() || !(*backend)->Supports(GetParam()).ok()) {
    GTEST_SKIP() << "this processor has no fast kernels for " << DTypeName(GetParam());
  }
  TempDirectory directory;
  WriteCheckpoint(directory.path(), kConfig, 1);
  const ModelOptions options = MakeOptions(GetParam(), {2, 1});
  const auto estimate = EstimateMemory(
      directory.path(), {.dtype = GetParam(),
                         .limits = {.max_batch_tokens = 1024, .max_batch_sequences = 256},
                         .replicas = options.replicas});
  ASSERT_TRUE(estimate.ok()) << estimate.status();
  ServerMetrics metrics("test");
  TaskPool completions(1, "completion");
  GiveBackFreedMemory();
  const int64_t before = AnonymousBytes();
  const auto model = LoadModel({.name = "m", .directory = directory.path()}, **backend, options,
                               metrics, completions.executor());
  ASSERT_TRUE(model.ok()) << model.status();
  GiveBackFreedMemory();
  const int64_t grown = AnonymousBytes() - before;
  const ModelLoadInfo info = (*model)->LoadInfo();
  const auto mib = [](int64_t bytes) {
    return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / kMiB);
  };
  SCOPED_TRACE(absl::StrCat("estimate: weights ", mib(estimate->weight_bytes), ", sessions ",
                            mib(estimate->session_bytes), ", loading ", mib(estimate->load_bytes),
                            "; the process grew by ", mib(grown), ", weights ",
                            mib(info.weight_bytes), ", sessions ", mib(info.arena_bytes)));
  EXPECT_GE(estimate->peak(), grown);
  EXPECT_LE(static_cast<double>(estimate->held()), 1.25 * static_cast<double>(grown) + 8 * kMiB);
  EXPECT_GE(estimate->held(), info.weight_bytes + info.arena_bytes);
}

INSTANTIATE_TEST_SUITE_P(Formats, EstimateTest,
                         testing::Values(DType::kF32, DType::kBf16, DType::kInt8),
                         [](const auto& tested) { return std::string(DTypeName(tested.param)); });

TEST(MemoryCheckTest, AModelThatDoesNotFitIsRefusedBeforeItIsRead) {
  TempDirectory directory;
  WriteTinyModel(directory.path());
  const auto backend = MakeBackend("cpu", {.load_threads = 1});
  if (!backend.ok()) GTEST_SKIP() << backend.status();
  ModelOptions options = MakeOptions(DType::kF32, {1});
  const auto memory = std::make_shared<ModelMemory>(1000);
  options.memory = memory;
  ServerMetrics metrics("test");
  TaskPool completions(1, "completion");
  const auto refused = LoadModel({.name = "m", .directory = directory.path()}, **backend, options,
                                 metrics, completions.executor());
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("limit of all together is 1000"));
  EXPECT_EQ(memory->held_bytes(), 0);
  options.memory = std::make_shared<ModelMemory>(64 * kMiB);
  auto model = LoadModel({.name = "m", .directory = directory.path()}, **backend, options, metrics,
                         completions.executor());
  ASSERT_TRUE(model.ok()) << model.status();
  const ModelLoadInfo info = (*model)->LoadInfo();
  EXPECT_EQ(options.memory->held_bytes(), info.weight_bytes + info.arena_bytes);
  model->reset();
  EXPECT_EQ(options.memory->held_bytes(), 0);
}

// Its weights are stored as f32: without an adapter they are read where they are.
TEST(MemoryCheckTest, WeightsAreCopiedForAnAdapterOnly) {
  constexpr int64_t kAdaptedValues = 16320;
  const std::string folder = "tests/golden/adapters/jina_v3";
  EstimateOptions adapted;
  adapted.merges_adapter = true;
  const auto plain = EstimateMemory(folder, {});
  const auto merged = EstimateMemory(folder, adapted);
  ASSERT_TRUE(plain.ok() && merged.ok()) << plain.status() << merged.status();
  EXPECT_EQ(merged->load_bytes - plain->load_bytes, kAdaptedValues * int64_t{sizeof(float)});
  EXPECT_EQ(merged->weight_bytes, plain->weight_bytes);
}

TEST(MemoryCheckTest, ACheckpointThatCannotBeReadHasNoEstimate) {
  TempDirectory directory;
  EXPECT_TRUE(absl::IsNotFound(EstimateMemory(directory.path(), {}).status()));
}

}  // namespace
}  // namespace attendant
