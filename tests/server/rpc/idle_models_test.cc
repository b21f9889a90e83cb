// SPDX-License-Identifier: Apache-2.0
// What attendant.v1 says of models that were unloaded because they were idle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/protocols/attention/to_proto.h"
#include "server/protocols/encoder/model_message.h"
#include "tests/server/models/registry_fixture.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;

class IdleModelsTest : public ModelRegistryTest {
 protected:
  IdleModelsTest() : ModelRegistryTest({.unload_idle = absl::Milliseconds(1)}) {}

  // The model in this folder, once it is idle.
  ModelStatus Idle(const std::string& name) {
    registry_.SetModels({{name, directory_ / name}});
    registry_.StartLoading();
    AwaitChange(name, ModelState::kIdle);
    return registry_.List()[0];
  }
};

TEST_F(IdleModelsTest, AnEncoderIsDescribedAsItWas) {
  WriteTinyClassifier(directory_ / "classifier", {"bad", "good"});
  WriteFile(
      (directory_ / "classifier") + "/config_sentence_transformers.json",
      R"({"prompts": {"query": "hello ", "document": "world "}, "default_prompt_name": "query"})");
  v1::ModelInfo info;
  ToProto(Idle("classifier"), info);
  EXPECT_EQ(info.state(), v1::MODEL_STATE_IDLE);
  EXPECT_EQ(info.backend(), "reference");
  EXPECT_EQ(info.dtype(), "f32");
  EXPECT_EQ(info.layers(), kTinyConfig.layers);
  EXPECT_EQ(info.heads(), kTinyConfig.heads);
  EXPECT_EQ(info.hidden(), kTinyConfig.hidden);
  EXPECT_EQ(info.vocab(), kTinyConfig.vocab);
  EXPECT_EQ(info.embedding_dims(), kTinyConfig.hidden);
  EXPECT_EQ(info.max_sequence_tokens(), options_.batcher.max_batch_tokens);
  EXPECT_EQ(info.max_text_tokens(), options_.batcher.max_batch_tokens);
  EXPECT_THAT(info.labels(), ElementsAre("bad", "good"));
  EXPECT_THAT(info.tasks(), ElementsAre("scores"));
  EXPECT_THAT(info.prompt_names(), ElementsAre("document", "query"));
  EXPECT_EQ(info.default_prompt_name(), "query");
}

TEST_F(IdleModelsTest, PoolingStays) {
  v1::ModelInfo info;
  ToProto(Idle("tiny"), info);
  EXPECT_EQ(info.pooling(), v1::POOLING_MEAN);
  EXPECT_THAT(info.poolings(), ElementsAre(v1::POOLING_MEAN));
  EXPECT_TRUE(info.normalize());
  EXPECT_EQ(info.max_text_tokens(), kTinyMaxTextTokens);
}

TEST_F(IdleModelsTest, AModuleIsDescribedAsItWas) {
  WriteTinyModule(directory_ / "mha");
  v1::AttentionModuleInfo info;
  ToProto(Idle("mha"), info);
  EXPECT_EQ(info.state(), v1::MODEL_STATE_IDLE);
  EXPECT_EQ(info.type(), "multi_head");
  EXPECT_EQ(info.dtype(), "f32");
  EXPECT_EQ(info.heads(), 2);
  EXPECT_EQ(info.hidden(), 4);
  EXPECT_EQ(info.key_dim(), 4);
}

TEST_F(IdleModelsTest, AModelThatHasNotLoadedIsNotDescribed) {
  load_gate_.Close();
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  load_gate_.AwaitWaiting(1);
  v1::ModelInfo info;
  ToProto(registry_.List()[0], info);
  EXPECT_EQ(info.state(), v1::MODEL_STATE_LOADING);
  EXPECT_EQ(info.layers(), 0);
  EXPECT_TRUE(info.tasks().empty());
}

}  // namespace
}  // namespace attendant
