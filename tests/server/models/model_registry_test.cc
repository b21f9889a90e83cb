// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/model_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"
#include "server/models/attention_model.h"
#include "tests/server/models/registry_fixture.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST_F(ModelRegistryTest, LoadsOneAfterTheOther) {
  load_gate_.Close();
  registry_.SetModels({{"tiny", directory_ / "tiny"}, {"broken", directory_ / "broken"}});
  EXPECT_EQ(registry_.Find("broken").status().code(), absl::StatusCode::kUnavailable);
  registry_.StartLoading();
  EXPECT_EQ(registry_.Find("tiny").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("'tiny' is loading"));
  load_gate_.Open();
  AwaitChanges(2);
  EXPECT_THAT(changes(),
              ElementsAre(Pair("tiny", ModelState::kReady), Pair("broken", ModelState::kFailed)));
  ASSERT_TRUE(registry_.Find("tiny").ok());
  const absl::Status broken = registry_.Find("broken").status();
  EXPECT_EQ(broken.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(broken.message()), HasSubstr("failed to load: "));
  EXPECT_EQ(registry_.Find("nobody").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(registry_.Ready().ok()) << "one model serves";
}

// A back end for whose threads there is no place.
class ScarceBackend final : public Backend {
 public:
  absl::string_view name() const override { return "scarce"; }
  absl::Status Supports(DType /*dtype*/) const override { return absl::OkStatus(); }
  DType preferred_dtype() const override { return DType::kF32; }
  absl::StatusOr<std::unique_ptr<PreparedEncoder>> Prepare(const EncoderConfig& /*config*/,
                                                           EncoderWeights /*weights*/,
                                                           DType /*dtype*/) const override {
    throw std::system_error(EAGAIN, std::generic_category());
  }
};

TEST_F(ModelRegistryTest, AThreadThatTheSystemRefusesFailsTheLoad) {
  const ScarceBackend backend;
  const absl::Status status =
      LoadModel({"tiny", directory_ / "tiny"}, backend, options_, metrics_, Run()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

// The weights' file is copied over while they are packed.
class InterruptedBackend final : public Backend {
 public:
  explicit InterruptedBackend(std::string weights) : weights_(std::move(weights)) {}
  absl::string_view name() const override { return "interrupted"; }
  absl::Status Supports(DType /*dtype*/) const override { return absl::OkStatus(); }
  DType preferred_dtype() const override { return DType::kF32; }
  absl::StatusOr<std::unique_ptr<PreparedEncoder>> Prepare(const EncoderConfig& config,
                                                           EncoderWeights weights,
                                                           DType dtype) const override {
    std::filesystem::resize_file(weights_, 0);
    return cpu_->Prepare(config, std::move(weights), dtype);
  }

 private:
  const std::string weights_;
  const std::unique_ptr<Backend> cpu_ = MakeCpuBackend().value();
};

TEST_F(ModelRegistryTest, WeightsThatAreCutWhileTheyAreReadFailTheLoad) {
  const InterruptedBackend backend(directory_ / "tiny/model.safetensors");
  const absl::Status status =
      LoadModel({"tiny", directory_ / "tiny"}, backend, options_, metrics_, Run()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("tiny/model.safetensors changed while it was read"));
}

TEST_F(ModelRegistryTest, AnErrorThatQuotesAFileIsShortAndReadable) {
  const std::string name =
      "caf\u00e9\\n2026-11-25 09:00:00 error forged" + std::string(1 << 20, 'x');
  WriteFile(directory_ / "tiny/tokenizer.json",
            absl::StrCat(R"({"model": {"type": ")", name, R"("}})"));
  const std::string error = ErrorOfLoad();
  EXPECT_THAT(error, HasSubstr("caf\u00e9\\n2026"));
  EXPECT_LT(error.size(), 1100u);
}

TEST_F(ModelRegistryTest, AnErrorThatListsAFileIsCut) {
  std::string shape = "1";
  for (int i = 0; i < 100'000; ++i) shape += ",1";
  WriteFile(directory_ / "tiny/model.safetensors",
            SafetensorsBytes(absl::StrCat(R"({"x":{"dtype":"F32","shape":[)", shape,
                                          R"(],"data_offsets":[0,8]}})"),
                             "01234567"));
  const std::string error = ErrorOfLoad();
  EXPECT_THAT(error, HasSubstr("shape [1, 1"));
  EXPECT_LT(error.size(), 1100u);
}

TEST_F(ModelRegistryTest, AReadyModelHasItsSettings) {
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  AwaitChanges(1);
  ASSERT_TRUE(registry_.Ready().ok());
  const std::shared_ptr<EncoderModel> found = *registry_.Find("tiny");
  const EncoderModel& model = *found;
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

// Whoever asks before the drain begins shall go elsewhere; whoever is here is served.
TEST_F(ModelRegistryTest, AnAnnouncedDrainIsNotReadyAndServesOn) {
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  AwaitChanges(1);
  EXPECT_TRUE(registry_.Ready().ok());
  registry_.AnnounceDrain();
  EXPECT_EQ(registry_.Ready(), absl::UnavailableError("the server is stopping"));
  EXPECT_TRUE(registry_.Find("tiny").ok());
}

TEST_F(ModelRegistryTest, ADrainLeavesAFailedModelFailed) {
  registry_.SetModels({{"tiny", directory_ / "tiny"}, {"broken", directory_ / "broken"}});
  registry_.StartLoading();
  AwaitChanges(2);
  registry_.Drain(absl::InfiniteFuture());
  EXPECT_EQ(registry_.List()[0].state, ModelState::kDraining);
  EXPECT_EQ(registry_.List()[1].state, ModelState::kFailed);
  EXPECT_EQ(changes().size(), 3u);
}

TEST_F(ModelRegistryTest, WhatIsBuiltInMakesNoServerReady) {
  registry_.SetModels({{"broken", directory_ / "broken"}});
  registry_.AddBuiltIn(MakeAttention(options_, metrics_, Run()));
  registry_.StartLoading();
  AwaitChanges(1);
  EXPECT_TRUE(registry_.FindAttention("attention").ok());
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("'broken' failed to load"));
}

class PolledModelsTest : public ModelRegistryTest {
 protected:
  PolledModelsTest() : ModelRegistryTest({.control = ModelControl::kPoll}) {}
};

TEST_F(PolledModelsTest, AServerWhoseModelsFailedIsNotReady) {
  registry_.SetModels({{"broken", directory_ / "broken"}});
  registry_.AddBuiltIn(MakeAttention(options_, metrics_, Run()));
  registry_.StartLoading();
  AwaitChanges(1);
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("'broken' failed to load"));
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
  WriteTinyModule(directory_ / "mha");
  registry_.SetModels({{"mha", directory_ / "mha"}, {"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  AwaitChanges(2);
  const absl::StatusOr<std::shared_ptr<AttentionModel>> module = registry_.FindAttention("mha");
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
  EXPECT_FALSE(registry_.Ready().ok());
  EXPECT_EQ(registry_.List().size(), 1u);
  load_gate_.Open();
  AwaitChanges(1);
  EXPECT_TRUE(registry_.Ready().ok());
  registry_.Drain(absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsUnavailable(registry_.FindAttention("attention").status()));
  for (const auto& [name, state] : changes()) EXPECT_EQ(name, "tiny");
}

}  // namespace
}  // namespace attendant
