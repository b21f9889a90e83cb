// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "kernels/reference/reference_backend.h"
#include "server/metrics/server_metrics.h"
#include "server/models/attention_model.h"
#include "server/models/model_loader.h"
#include "server/task_pool.h"
#include "tests/server/gated_backend.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class ModelRegistryTest : public ::testing::Test {
 protected:
  ModelRegistryTest() : registry_(Loader(), metrics_, Run()) {
    WriteTinyModel(directory_ / "tiny");
    registry_.SetListener([this](const std::string& name, ModelState state) {
      absl::MutexLock lock(&mutex_);
      changes_.emplace_back(name, state);
    });
  }
  ~ModelRegistryTest() override { load_gate_.Open(); }

  ModelLoader Loader() {
    return [this](const ModelSource& source, ServerMetrics& metrics, const Executor& executor) {
      load_gate_.Pass();
      return CheckpointLoader(*backend_, options_)(source, metrics, executor);
    };
  }
  Executor Run() {
    return [this](TaskPool::Task task) { completions_.Post(std::move(task)); };
  }
  void AwaitChanges(size_t count) {
    const auto there = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return changes_.size() >= count;
    };
    absl::MutexLock lock(&mutex_, absl::Condition(&there));
  }

  TempDirectory directory_;
  absl::Mutex mutex_;
  std::vector<std::pair<std::string, ModelState>> changes_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend();
  ModelOptions options_{.dtype = "f32",
                        .replicas = {1, 1},
                        .batcher = {.max_batch_tokens = 48,
                                    .max_batch_sequences = 8,
                                    .max_queued_tokens = 1000,
                                    .max_queued_requests = 10,
                                    .max_queue_delay = absl::ZeroDuration()}};
  Gate load_gate_;
  ServerMetrics metrics_{"test"};
  TaskPool completions_{1, "completion"};
  ModelRegistry registry_;
};

TEST_F(ModelRegistryTest, LoadsOneAfterTheOther) {
  load_gate_.Close();
  registry_.SetModels({{"tiny", directory_ / "tiny"}, {"broken", directory_ / "broken"}});
  EXPECT_EQ(registry_.Find("broken").status().code(), absl::StatusCode::kUnavailable);
  registry_.StartLoading();
  EXPECT_EQ(registry_.Find("tiny").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("'tiny' is loading"));
  load_gate_.Open();
  AwaitChanges(2);
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_THAT(changes_,
                ElementsAre(Pair("tiny", ModelState::kReady), Pair("broken", ModelState::kFailed)));
  }
  ASSERT_TRUE(registry_.Find("tiny").ok());
  const absl::Status broken = registry_.Find("broken").status();
  EXPECT_EQ(broken.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(broken.message()), HasSubstr("failed to load: "));
  EXPECT_EQ(registry_.Find("nobody").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(registry_.Ready().ok()) << "one model serves";
  EXPECT_TRUE(registry_.Contains("broken"));
  EXPECT_FALSE(registry_.Contains("nobody"));
}

TEST_F(ModelRegistryTest, AReadyModelHasItsSettings) {
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  AwaitChanges(1);
  ASSERT_TRUE(registry_.Ready().ok());
  const EncoderModel& model = **registry_.Find("tiny");
  EXPECT_EQ(model.name, "tiny");
  EXPECT_EQ(model.config().hidden, kTinyConfig.hidden);
  EXPECT_EQ(model.max_sequence_tokens, 48) << "the batch budget is below the position table";
  EXPECT_EQ(model.sentence.max_text_tokens, kTinyMaxTextTokens);
  EXPECT_TRUE(model.sentence.normalize);
  EXPECT_NE(model.tokenizer, nullptr);
  EXPECT_GT(model.load_time, absl::ZeroDuration());
  EXPECT_THAT(metrics_.Scrape(), HasSubstr("attendant_model_loaded_info{"));
}

TEST_F(ModelRegistryTest, ATokenizerWithTooManyIdsFailsTheLoad) {
  EncoderConfig config = kTinyConfig;
  config.vocab = 5;
  WriteCheckpoint(directory_ / "tiny", config, 1);
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  AwaitChanges(1);
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("vocab_size is 5"));
}

TEST_F(ModelRegistryTest, ATokenizerWithSegmentsTheModelLacksFailsTheLoad) {
  WriteFile(directory_ / "tiny/tokenizer.json", TinyTokenizer(/*text_type_id=*/2000000000));
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  AwaitChanges(1);
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("2000000000"));
}

TEST_F(ModelRegistryTest, DrainRefusesFromThenOn) {
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  AwaitChanges(1);
  registry_.Drain(absl::InfiniteFuture());
  const absl::Status status = registry_.Find("tiny").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("draining"));
  EXPECT_EQ(registry_.List()[0].state, ModelState::kDraining);
}

TEST_F(ModelRegistryTest, DrainGivesUpAModelThatIsLoading) {
  load_gate_.Close();
  registry_.SetModels({{"tiny", directory_ / "tiny"}, {"next", directory_ / "tiny"}});
  registry_.StartLoading();
  load_gate_.AwaitWaiting(1);
  registry_.Drain(absl::InfiniteFuture());
  load_gate_.Open();
  EXPECT_EQ(registry_.List()[0].state, ModelState::kDraining);
  EXPECT_EQ(registry_.List()[0].encoder(), nullptr);
}

TEST_F(ModelRegistryTest, TellsModulesFromEncoders) {
  const auto zeros = [](const std::string& name, const std::vector<int64_t>& dims, size_t count) {
    return FloatTensor(name, dims, std::vector<float>(count));
  };
  std::filesystem::create_directory(directory_ / "mha");
  WriteFile((directory_ / "mha") + "/config.json",
            R"({"type": "MultiheadAttention", "num_heads": 2})");
  WriteFile(
      (directory_ / "mha") + "/model.safetensors",
      SafetensorsBytes({zeros("in_proj_bias", {12}, 12), zeros("in_proj_weight", {12, 4}, 48),
                        zeros("out_proj.bias", {4}, 4), zeros("out_proj.weight", {4, 4}, 16)}));
  registry_.SetModels({{"mha", directory_ / "mha"}, {"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  AwaitChanges(2);
  const absl::StatusOr<AttentionModel*> module = registry_.FindAttention("mha");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ((*module)->module->config().heads, 2);
  EXPECT_TRUE(registry_.Find("tiny").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(registry_.Find("mha").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(registry_.FindAttention("tiny").status()));
  EXPECT_TRUE(absl::IsNotFound(registry_.FindAttention("nobody").status()));
  EXPECT_EQ(registry_.List()[0].encoder(), nullptr);
}

TEST_F(ModelRegistryTest, WhatIsBuiltInIsThereAtOnceAndNotListed) {
  load_gate_.Close();
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.AddBuiltIn(MakeAttention(options_, metrics_, Run()));
  registry_.StartLoading();
  EXPECT_TRUE(registry_.FindAttention("attention").ok());
  EXPECT_TRUE(registry_.Contains("attention"));
  EXPECT_FALSE(registry_.Ready().ok());
  EXPECT_EQ(registry_.List().size(), 1u);
  load_gate_.Open();
  AwaitChanges(1);
  EXPECT_TRUE(registry_.Ready().ok());
  registry_.Drain(absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsUnavailable(registry_.FindAttention("attention").status()));
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, state] : changes_) EXPECT_EQ(name, "tiny");
}

}  // namespace
}  // namespace attendant
