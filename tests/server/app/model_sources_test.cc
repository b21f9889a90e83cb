// SPDX-License-Identifier: Apache-2.0
#include "server/app/model_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

absl::StatusOr<std::vector<ModelSource>> Collect(const std::vector<std::string>& models,
                                                 const std::string& repository = "") {
  ServerFlags flags;
  flags.models = models;
  flags.model_repository = repository;
  absl::StatusOr<ModelSources> sources = CollectModels(flags);
  if (!sources.ok()) return sources.status();
  std::vector<ModelSource> all = sources->fixed;
  const std::vector<ModelSource> others = sources->InRepository();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

TEST(ModelSourcesTest, FlagsComeFirstThenTheRepositoryByName) {
  TempDirectory directory;
  for (const char* name : {"zebra", "ape", "notes"}) {
    std::filesystem::create_directory(directory / name);
  }
  WriteFile(directory / "zebra/config.json", "{}");
  WriteFile(directory / "ape/config.json", "{}");
  const auto sources = Collect({"first=/x=y"}, directory.path());
  ASSERT_TRUE(sources.ok()) << sources.status();
  ASSERT_EQ(sources->size(), 3u);
  EXPECT_EQ((*sources)[0].name, "first");
  EXPECT_EQ((*sources)[0].directory, "/x=y");
  EXPECT_EQ((*sources)[1].name, "ape");
  EXPECT_EQ((*sources)[1].directory, directory / "ape");
  EXPECT_EQ((*sources)[2].name, "zebra");
}

TEST(ModelSourcesTest, NamesOfEveryAllowedKindAreServed) {
  for (const std::string& name : {std::string(128, 'a'), std::string("A-z_0.9"), std::string("ids"),
                                  std::string("a.ids.b"), std::string("a.IDS")}) {
    const auto sources = Collect({name + "=/x"});
    ASSERT_TRUE(sources.ok()) << sources.status();
    EXPECT_EQ(sources->front().name, name);
  }
}

TEST(ModelSourcesTest, FoldersOfARepositoryObeyTheSameRules) {
  for (const char* name : {"minilm.encoder", "minilm.ids", "mini lm"}) {
    TempDirectory directory;
    std::filesystem::create_directory(directory / name);
    WriteFile((directory / name) + "/config.json", "{}");
    const auto sources = Collect({}, directory.path());
    EXPECT_EQ(sources.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(sources.status().message()), HasSubstr(name));
  }
}

TEST(ModelSourcesTest, WhatCannotBeServedIsSkippedBesideAModel) {
  TempDirectory directory, elsewhere;
  WriteFile(elsewhere / "config.json", "{}");
  for (const char* name : {"m", "mini lm"}) {
    std::filesystem::create_directory(directory / name);
    WriteFile((directory / name) + "/config.json", "{}");
  }
  std::filesystem::create_directory_symlink(elsewhere.path(), directory / "out");
  for (const ModelControl control :
       {ModelControl::kNone, ModelControl::kExplicit, ModelControl::kPoll}) {
    ServerFlags flags;
    flags.model_repository = directory.path();
    flags.model_control = control;
    const auto sources = CollectModels(flags);
    ASSERT_TRUE(sources.ok()) << sources.status();
    const auto& refused = sources->repository.refused;
    EXPECT_THAT(sources->repository.models, ElementsAre(Key("m")));
    ASSERT_EQ(refused.size(), 2u);
    EXPECT_THAT(std::string(refused.at("mini lm").message()), HasSubstr("'mini lm'"));
    EXPECT_THAT(std::string(refused.at("out").message()), HasSubstr("leads out"));
  }
}

TEST(ModelSourcesTest, ARepositoryMayBeEmptyWhenModelsComeLater) {
  TempDirectory empty;
  ServerFlags flags;
  flags.model_repository = empty.path();
  for (const auto& [control, ok] : {std::pair(ModelControl::kNone, false),
                                    {ModelControl::kExplicit, true},
                                    {ModelControl::kPoll, true}}) {
    flags.model_control = control;
    EXPECT_EQ(CollectModels(flags).ok(), ok) << static_cast<int>(control);
  }
}

TEST(ModelSourcesTest, VersionsOfARepositoryAreOneModel) {
  TempDirectory directory;
  for (const char* version : {"m/1", "m/2", "m/3"}) {
    std::filesystem::create_directories(directory / version);
    WriteFile((directory / version) + "/config.json", "{}");
  }
  ServerFlags flags;
  flags.model_repository = directory.path();
  flags.max_model_versions = 2;
  const auto sources = CollectModels(flags);
  ASSERT_TRUE(sources.ok()) << sources.status();
  const std::vector<ModelSource> served = sources->InRepository();
  ASSERT_EQ(served.size(), 2u);
  EXPECT_EQ(served[0].version, 2);
  EXPECT_EQ(served[1].version, 3);
}

TEST(ModelSourcesTest, AFixedModelIsFoundBeforeTheRepository) {
  TempDirectory directory;
  std::filesystem::create_directory(directory / "m");
  WriteFile(directory / "m/config.json", "{}");
  const ModelRepository repository(directory.path(), 1);
  const ModelFinder find = MakeFinder({{"fixed", "/x"}}, &repository);
  EXPECT_EQ(find("fixed")->front().directory, "/x");
  EXPECT_EQ(find("m")->front().directory, directory / "m");
  EXPECT_TRUE(absl::IsNotFound(find("nobody").status()));
  EXPECT_TRUE(absl::IsNotFound(MakeFinder({}, nullptr)("nobody").status()));
}

TEST(ModelSourcesTest, AFingerprintIsThatOfTheFolder) {
  TempDirectory directory;
  WriteFile(directory / "config.json", "{}");
  const ModelSource source = {.name = "m", .directory = directory.path()};
  const std::string before = FingerprintOf(source);
  EXPECT_THAT(before, HasSubstr("config.json"));
  EXPECT_EQ(FingerprintOf(source), before);
  WriteFile(directory / "weights", "x");
  EXPECT_NE(FingerprintOf(source), before);
  EXPECT_EQ(FingerprintOf({.name = "m", .directory = directory / "gone"}), "");
}

TEST(ModelSourcesTest, SaysWhatIsWrong) {
  TempDirectory empty, model;
  WriteFile(model / "config.json", "{}");
  const std::tuple<std::vector<std::string>, std::string, std::string> cases[] = {
      {{"a"}, "", "give NAME=DIR"},
      {{"=/x"}, "", "give NAME=DIR"},
      {{"a="}, "", "give NAME=DIR"},
      {{"a b=/x"}, "", "model name 'a b' of 3 bytes cannot be served: use 1 to 128 letters"},
      {{"a/b=/x"}, "", "cannot be served"},
      {{"a\n=/x"}, "", "model name 'a\\n' of 2 bytes cannot be served"},
      {{"\xc3\xa9=/x"}, "", "cannot be served"},
      {{std::string(129, 'a') + "=/x"}, "", "cannot be served"},
      {{"a=/x", "a=/y"}, "", "two models would be served as 'a'"},
      {{"a.ids=/x"}, "", "model name 'a.ids' cannot be served: to KServe clients"},
      {{"a=/x", "a.encoder=/y"}, "", "model name 'a.encoder' cannot be served: to KServe"},
      {{".ids=/x"}, "", "cannot be served"},
      {{"attention=/x"}, "", "the attention operators that need no model are called so"},
      {{}, empty.path(), "has no folder with a config.json"},
      {{}, model.path(), "is a model itself: give --model NAME="},
  };
  for (const auto& [models, repository, message] : cases) {
    const auto sources = Collect(models, repository);
    EXPECT_EQ(sources.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(sources.status().message()), HasSubstr(message));
  }
}

// A disk of the network may come late: whoever starts the server may try again.
TEST(ModelSourcesTest, ARepositoryThatCannotBeReadNowMayComeLater) {
  TempDirectory empty;
  const absl::Status status = Collect({}, empty / "gone").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--model_repository"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("No such file"));
}

TEST(ModelWeightsTest, AreReadByName) {
  ServerFlags flags;
  flags.model_weights = {"a=0.01", "b=100", "c=2.5"};
  const auto weights = ReadModelWeights(flags);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_THAT(*weights,
              testing::UnorderedElementsAre(testing::Pair("a", 0.01), testing::Pair("b", 100.0),
                                            testing::Pair("c", 2.5)));
}

TEST(ModelWeightsTest, WhatIsNoWeightIsRefused) {
  for (const char* text : {"", "a", "=1", "a=", "a=0", "a=0.009", "a=100.1", "a=-1", "a=nan",
                           "a=inf", "a=1x", "a=1=1"}) {
    ServerFlags flags;
    flags.model_weights = {text};
    EXPECT_THAT(std::string(ReadModelWeights(flags).status().message()), HasSubstr("NAME=WEIGHT"))
        << text;
  }
  ServerFlags flags;
  flags.model_weights = {"a=1", "a=2"};
  EXPECT_THAT(std::string(ReadModelWeights(flags).status().message()), HasSubstr("two weights"));
}

TEST(ModelAdaptersTest, AreReadByName) {
  ServerFlags flags;
  flags.model_adapters = {"a=retrieval.query", "b=x=y"};
  const auto adapters = ReadModelAdapters(flags);
  ASSERT_TRUE(adapters.ok()) << adapters.status();
  EXPECT_THAT(*adapters, testing::UnorderedElementsAre(testing::Pair("a", "retrieval.query"),
                                                       testing::Pair("b", "x=y")));
}

TEST(ModelSourcesTest, AdaptersAndWeightsAreOfModelsThatAreThereOrMayComeLater) {
  for (const auto settings : {&ServerFlags::model_adapters, &ServerFlags::model_weights}) {
    ServerFlags flags;
    flags.models = {"a=/models/a"};
    flags.*settings = {"b=2"};
    EXPECT_THAT(std::string(CollectModels(flags).status().message()),
                HasSubstr("there is no model 'b'"));
    flags.model_control = ModelControl::kExplicit;
    EXPECT_TRUE(CollectModels(flags).ok());
    flags.model_control = ModelControl::kNone;
    flags.*settings = {"a=2"};
    EXPECT_TRUE(CollectModels(flags).ok());
  }
}

TEST(ModelAdaptersTest, WhatIsNoAdapterIsRefused) {
  for (const char* text : {"", "a", "=x", "a="}) {
    ServerFlags flags;
    flags.model_adapters = {text};
    EXPECT_THAT(std::string(ReadModelAdapters(flags).status().message()), HasSubstr("NAME=ADAPTER"))
        << text;
  }
  ServerFlags flags;
  flags.model_adapters = {"a=x", "a=y"};
  EXPECT_THAT(std::string(ReadModelAdapters(flags).status().message()), HasSubstr("two adapters"));
}

}  // namespace
}  // namespace attendant
