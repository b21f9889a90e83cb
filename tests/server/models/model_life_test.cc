// SPDX-License-Identifier: Apache-2.0
// Loading, replacing and unloading while requests share in the models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "absl/strings/str_cat.h"
#include "tests/server/models/life_fixture.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST_F(ModelLifeTest, AReplacedModelAnswersWhoeverSharesInIt) {
  Start();
  std::shared_ptr<EncoderModel> old = *registry_.Find("tiny");
  const std::weak_ptr<EncoderModel> freed = old;
  ASSERT_TRUE(Load().ok());
  const std::shared_ptr<EncoderModel> replacement = *registry_.Find("tiny");
  EXPECT_NE(replacement, old);
  EXPECT_TRUE(Submit(replacement).get().ok());
  EXPECT_TRUE(Submit(std::move(old)).get().ok()) << "found before, submitted after the switch";
  AwaitFreed(freed);
}

TEST_F(ModelLifeTest, RequestsInWorkEndOnTheModelThatIsReplaced) {
  Start();
  run_gate_.Close();
  std::vector<std::future<absl::Status>> requests;
  for (int i = 0; i < 5; ++i) requests.push_back(Submit(*registry_.Find("tiny")));
  run_gate_.AwaitWaiting(1);
  const std::weak_ptr<EncoderModel> old = *registry_.Find("tiny");
  std::future<absl::Status> load = std::async(std::launch::async, [this] { return Load(); });
  run_gate_.Open();
  EXPECT_TRUE(load.get().ok());
  for (std::future<absl::Status>& request : requests) EXPECT_TRUE(request.get().ok());
  AwaitFreed(old);
}

TEST_F(ModelLifeTest, AFailedLoadKeepsWhatServes) {
  Start();
  const std::shared_ptr<EncoderModel> before = *registry_.Find("tiny");
  Break();
  EXPECT_THAT(std::string(Load().message()), HasSubstr("config.json"));
  EXPECT_EQ(*registry_.Find("tiny"), before);
  ModelStatus status = registry_.List()[0];
  EXPECT_EQ(status.state, ModelState::kReady);
  EXPECT_THAT(std::string(status.error.message()), HasSubstr("config.json"));
  Mend();
  EXPECT_TRUE(Load().ok());
  EXPECT_NE(*registry_.Find("tiny"), before);
  EXPECT_TRUE(registry_.List()[0].error.ok());
}

TEST_F(ModelLifeTest, AFailedLoadShowsInTheMetricsWhileItIsTheLastOne) {
  const auto shows = [](int failed) {
    return HasSubstr(absl::StrCat("attendant_model_failed{model=\"tiny\"} ", failed, "\n"));
  };
  Start();
  EXPECT_THAT(metrics_.Scrape(), shows(0));
  Break();
  EXPECT_FALSE(Load().ok());
  EXPECT_THAT(metrics_.Scrape(), shows(1)) << "it serves, but not what is in its folder";
  EXPECT_FALSE(Load("other").ok());
  Mend();
  EXPECT_TRUE(Load().ok());
  EXPECT_THAT(metrics_.Scrape(), shows(0)) << "whatever the other one shows";
  SetVersions({{1, "tiny"}, {2, "broken"}});
  EXPECT_FALSE(Load().ok());
  EXPECT_THAT(metrics_.Scrape(), shows(1)) << "its other version does not make up for it";
  SetVersions({{1, "tiny"}});
  EXPECT_TRUE(Load().ok());
  EXPECT_THAT(metrics_.Scrape(), shows(0));
  Break();
  EXPECT_FALSE(Load().ok());
  EXPECT_TRUE(Unload().ok());
  EXPECT_THAT(metrics_.Scrape(), Not(HasSubstr("attendant_model_failed{model=\"tiny\"}")));
  EXPECT_FALSE(Load().ok());
  EXPECT_THAT(metrics_.Scrape(), shows(1)) << "nothing serves";
}

TEST_F(ModelLifeTest, AModelIsUnloadedAndLoadedAgain) {
  Start();
  EXPECT_THAT(metrics_.Scrape(), HasSubstr("model=\"tiny\""));
  ASSERT_TRUE(Unload().ok());
  EXPECT_EQ(registry_.List()[0].state, ModelState::kUnloaded);
  const absl::Status found = registry_.Find("tiny").status();
  EXPECT_TRUE(absl::IsUnavailable(found));
  EXPECT_THAT(std::string(found.message()), HasSubstr("is not loaded"));
  EXPECT_THAT(metrics_.Scrape(), Not(HasSubstr("model=\"tiny\"")));
  EXPECT_TRUE(registry_.Ready().ok()) << "clients may load models";
  EXPECT_TRUE(Load().ok());
  EXPECT_TRUE(registry_.Find("tiny").ok());
  EXPECT_THAT(changes(),
              ElementsAre(Pair("tiny", ModelState::kReady), Pair("tiny", ModelState::kUnloading),
                          Pair("tiny", ModelState::kUnloaded), Pair("tiny", ModelState::kLoading),
                          Pair("tiny", ModelState::kReady)));
}

TEST_F(ModelLifeTest, UnloadingWaitsForRequests) {
  Start();
  run_gate_.Close();
  std::future<absl::Status> request = Submit(*registry_.Find("tiny"));
  run_gate_.AwaitWaiting(1);
  std::future<absl::Status> unload = std::async(std::launch::async, [this] { return Unload(); });
  AwaitChange("tiny", ModelState::kUnloading);
  EXPECT_TRUE(absl::IsUnavailable(registry_.Find("tiny").status()));
  EXPECT_EQ(unload.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  run_gate_.Open();
  EXPECT_TRUE(request.get().ok());
  EXPECT_TRUE(unload.get().ok());
}

TEST_F(ModelLifeTest, AModelThatIsGoneIsForgotten) {
  Start();
  SetVersions({});
  EXPECT_TRUE(absl::IsNotFound(Load()));
  EXPECT_TRUE(registry_.Find("tiny").ok()) << "it serves until it is unloaded";
  EXPECT_TRUE(Unload().ok());
  EXPECT_TRUE(registry_.List().empty());
  EXPECT_TRUE(absl::IsNotFound(registry_.Find("tiny").status()));
  EXPECT_TRUE(absl::IsNotFound(Unload()));
}

TEST_F(ModelLifeTest, TheHighestVersionThatLoadedServes) {
  for (const char* folder : {"two", "ten"}) WriteTinyModel(directory_ / folder);
  SetVersions({{2, "two"}, {10, "ten"}});
  registry_.StartLoading();
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ((*registry_.Find("tiny"))->version, 10);
  EXPECT_EQ((*registry_.Find("tiny", "2"))->version, 2);
  for (const char* version : {"1", "02", "2 ", "-2", "latest"}) {
    const absl::Status status = registry_.Find("tiny", version).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << version;
    EXPECT_THAT(std::string(status.message()), HasSubstr("only 2, 10"));
  }
  SetVersions({{10, "ten"}, {11, "none"}});
  EXPECT_FALSE(Load().ok());
  EXPECT_EQ((*registry_.Find("tiny"))->version, 10) << "version 11 cannot be loaded";
  EXPECT_TRUE(registry_.Find("tiny", "2").ok()) << "nothing is given up after a failure";
  SetVersions({{11, "two"}});
  EXPECT_TRUE(Load().ok());
  EXPECT_EQ((*registry_.Find("tiny"))->version, 11);
  EXPECT_EQ(registry_.List().size(), 1u);
}

TEST_F(ModelLifeTest, LoadsThatWaitAreOne) {
  Start();
  load_gate_.Close();
  std::vector<std::future<absl::Status>> loads;
  for (int i = 0; i < 5; ++i) {
    auto ended = std::make_shared<std::promise<absl::Status>>();
    loads.push_back(ended->get_future());
    registry_.Load("tiny", [ended](const absl::Status& status) { ended->set_value(status); });
    if (i == 0) load_gate_.AwaitWaiting(1);
  }
  load_gate_.Open();
  for (std::future<absl::Status>& load : loads) EXPECT_TRUE(load.get().ok());
  EXPECT_EQ(loads_, 3) << "that of the start, the running one, and one for the four that waited";
}

TEST_F(ModelLifeTest, ADrainRefusesLoadsThatWaitAndThatCome) {
  Start();
  load_gate_.Close();
  std::future<absl::Status> running = std::async(std::launch::async, [this] { return Load(); });
  load_gate_.AwaitWaiting(1);
  std::promise<absl::Status> waiting;
  registry_.Unload("tiny", [&](const absl::Status& status) { waiting.set_value(status); });
  registry_.Drain(absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsUnavailable(waiting.get_future().get()));
  EXPECT_EQ(running.wait_for(absl::ToChronoSeconds(kLimit)), std::future_status::ready);
  EXPECT_TRUE(absl::IsUnavailable(Load()));
  load_gate_.Open();
  EXPECT_TRUE(absl::IsUnavailable(running.get()));
  EXPECT_EQ(registry_.List()[0].state, ModelState::kDraining);
}

// One after the other, its two workers find that they are lost.
TEST_F(ModelLifeTest, AModelWhoseDeviceIsLostServesNoMore) {
  Start();
  // Found before the loss: the registry may notice it at any time after the first answer.
  const std::shared_ptr<EncoderModel> model = *registry_.Find("tiny");
  run_gate_.Lose();
  EXPECT_TRUE(registry_.Live().ok());
  EXPECT_TRUE(absl::IsUnavailable(Submit(model).get()));
  EXPECT_TRUE(absl::IsUnavailable(Submit(model).get()));
  AwaitChange("tiny", ModelState::kLost);
  EXPECT_THAT(std::string(registry_.Find("tiny").status().message()),
              HasSubstr("has lost what it computed on: the device is lost"));
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("'tiny' has lost"));
  EXPECT_THAT(std::string(registry_.Live().message()), HasSubstr("'tiny' has lost"));
  EXPECT_THAT(metrics_.Scrape(), Not(HasSubstr("attendant_model_loaded_info{")));
}

TEST_F(ModelLifeTest, AModelThatHasLostOneOfItsVersionsCountsAsLoaded) {
  WriteTinyModel(directory_ / "two");
  SetVersions({{1, "tiny"}, {2, "two"}});
  Start();
  AwaitChange("tiny", ModelState::kReady, 2);
  run_gate_.Lose();
  int64_t lost = 0;
  for (const char* version : {"1", "2"}) {
    const std::shared_ptr<EncoderModel> model = *registry_.Find("tiny", version);
    EXPECT_THAT(metrics_.Scrape(), HasSubstr("attendant_model_loaded_info{")) << version;
    for (int worker = 1; worker <= 2; ++worker) {
      EXPECT_TRUE(absl::IsUnavailable(Submit(model).get()));
    }
    AwaitChange("tiny", ModelState::kLost, ++lost);
  }
  EXPECT_THAT(metrics_.Scrape(), Not(HasSubstr("attendant_model_loaded_info{")));
}

// Models may come later, but what came has failed.
TEST_F(ModelLifeTest, AServerWhoseModelFailedIsReadyOnceItLoadsOrIsUnloaded) {
  Break();
  registry_.SetModels({{"tiny", directory_ / "tiny"}}, {{"other", directory_ / "tiny"}});
  registry_.StartLoading();
  AwaitChange("tiny", ModelState::kFailed);
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("'tiny' failed to load"));
  load_gate_.Close();
  std::future<absl::Status> load = std::async(std::launch::async, [this] { return Load(); });
  load_gate_.AwaitWaiting(1);
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("'tiny' is loading"))
      << "it fails again";
  load_gate_.Open();
  EXPECT_FALSE(load.get().ok());
  EXPECT_FALSE(registry_.Ready().ok());
  ASSERT_TRUE(Unload().ok());
  EXPECT_TRUE(registry_.Ready().ok()) << "clients may load models";
  EXPECT_FALSE(Load().ok());
  EXPECT_FALSE(registry_.Ready().ok());
  Mend();
  ASSERT_TRUE(Load().ok());
  EXPECT_TRUE(registry_.Ready().ok());
}

TEST_F(ModelLifeTest, AServerWhoseNewVersionFailedIsReady) {
  Start();
  Break();
  EXPECT_FALSE(Load().ok());
  EXPECT_TRUE(registry_.Ready().ok()) << "the instance from before serves";
  SetVersions({{1, "tiny"}, {2, "none"}});
  EXPECT_FALSE(Load().ok());
  EXPECT_EQ(registry_.List()[1].state, ModelState::kFailed);
  EXPECT_TRUE(registry_.Ready().ok()) << "version 1 serves";
}

TEST_F(ModelLifeTest, ADeviceThatIsLostDuringADrainChangesNoState) {
  Start();
  run_gate_.Close();
  std::vector<std::future<absl::Status>> requests;
  for (int worker = 1; worker <= 2; ++worker) {
    requests.push_back(Submit(*registry_.Find("tiny")));
    run_gate_.AwaitWaiting(worker);
  }
  std::future<void> drain =
      std::async(std::launch::async, [this] { registry_.Drain(absl::InfiniteFuture()); });
  AwaitChange("tiny", ModelState::kDraining);
  run_gate_.Lose();
  run_gate_.Open();
  for (std::future<absl::Status>& request : requests) {
    EXPECT_TRUE(absl::IsUnavailable(request.get()));
  }
  drain.get();
  EXPECT_EQ(registry_.List()[0].state, ModelState::kDraining);
  EXPECT_THAT(changes(),
              ElementsAre(Pair("tiny", ModelState::kReady), Pair("tiny", ModelState::kDraining)));
}

// Before its turn came, another version took the place of the one that was found at the start.
TEST_F(ModelLifeTest, AServerIsNotKeptWaitingByAVersionThatIsGone) {
  SetVersions({{2, "none"}});
  registry_.SetModels({{"tiny", directory_ / "tiny"}});
  registry_.StartLoading();
  EXPECT_FALSE(Load("other").ok()) << "its turn comes after that of the start";
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("failed to load"));
  const std::vector<ModelStatus> models = registry_.List();
  EXPECT_EQ(models[0].state, ModelState::kFailed);
  EXPECT_THAT(std::string(models[0].error.message()),
              HasSubstr("another version has taken its place"));
  EXPECT_EQ(models[1].state, ModelState::kFailed);
}

TEST_F(ModelLifeTest, NamesThatCannotBeServedAreRefused) {
  Start();
  for (const char* name : {"", ".", "..", "../tiny", "tiny/1", "/etc", ".tiny", "tiny.ids", "a b",
                           "attention", "tiny\n"}) {
    std::promise<absl::Status> ended;
    registry_.Load(name, [&](const absl::Status& status) { ended.set_value(status); });
    EXPECT_TRUE(absl::IsInvalidArgument(ended.get_future().get())) << name;
  }
  EXPECT_EQ(loads_, 1);
}

TEST(ModelControlTest, OnlyExplicitControlTakesCalls) {
  ServerMetrics metrics("test");
  for (const auto& [control, ok] :
       {std::pair(ModelControl::kNone, false), std::pair(ModelControl::kPoll, false),
        std::pair(ModelControl::kExplicit, true)}) {
    ModelRegistry registry({}, metrics, {}, {.control = control});
    EXPECT_EQ(registry.CheckControl().ok(), ok);
    EXPECT_EQ(registry.Ready().ok(), control == ModelControl::kExplicit) << "it has no model";
  }
}

TEST_F(ImpatientTest, RequestsThatDoNotEndInTimeAreEnded) {
  Start();
  run_gate_.Close();
  std::future<absl::Status> request = Submit(*registry_.Find("tiny"));
  run_gate_.AwaitWaiting(1);
  EXPECT_TRUE(Unload().ok());
  EXPECT_EQ(request.get(),
            absl::UnavailableError("model 'tiny' was unloaded before the request was done"));
  run_gate_.Open();  // the warm-up passes it too
  EXPECT_TRUE(Load().ok());
}

// Held, not submitted: the wait for its requests ends without them.
TEST_F(ImpatientTest, ALoadEndsNoRequestOfTheModelThatItReplaces) {
  Start();
  std::shared_ptr<EncoderModel> old = *registry_.Find("tiny");
  ASSERT_TRUE(Load().ok());
  ASSERT_TRUE(Load().ok()) << "begins when the first is over";
  EXPECT_TRUE(Submit(std::move(old)).get().ok());
}

TEST_F(ImpatientTest, AnUnloadEndsNoRequestOfAnotherModel) {
  Start();
  ASSERT_TRUE(Load("other").ok());
  std::shared_ptr<EncoderModel> old = *registry_.Find("tiny");
  ASSERT_TRUE(Load().ok());
  EXPECT_TRUE(Unload("other").ok());
  EXPECT_TRUE(Submit(std::move(old)).get().ok());
}

TEST_F(ImpatientTest, AnUnloadEndsTheRequestsOfAReplacedInstanceToo) {
  Start();
  std::shared_ptr<EncoderModel> old = *registry_.Find("tiny");
  ASSERT_TRUE(Load().ok());
  EXPECT_TRUE(Unload().ok());
  EXPECT_TRUE(absl::IsUnavailable(Submit(std::move(old)).get()));
}

TEST_F(ImpatientTest, AWorkerThatEndsLateIsWaitedForOnlyOnce) {
  Start();
  for (int times = 1; times <= 2; ++times) {
    run_gate_.Close();
    std::future<absl::Status> request = Submit(*registry_.Find("tiny"));
    run_gate_.AwaitWaiting(1);
    EXPECT_TRUE(Unload().ok());
    ASSERT_EQ(request.wait_for(absl::ToChronoSeconds(kLimit)), std::future_status::ready);
    EXPECT_TRUE(absl::IsUnavailable(request.get())) << times;
    run_gate_.Open();
    ASSERT_TRUE(Load().ok());
  }
}

TEST_F(ModelLifeTest, AStalledModelThatIsUnloadedLeavesTheServerReady) {
  options_.batcher.stall_timeout = absl::Milliseconds(1);
  Start();
  run_gate_.Close();
  std::future<absl::Status> request = Submit(*registry_.Find("tiny"));
  AwaitChange("tiny", ModelState::kReady, 2);
  EXPECT_THAT(std::string(registry_.Ready().message()), HasSubstr("has stalled"));
  std::future<absl::Status> unload = std::async(std::launch::async, [this] { return Unload(); });
  AwaitChange("tiny", ModelState::kUnloading);
  EXPECT_TRUE(registry_.Ready().ok());
  run_gate_.Open();
  EXPECT_TRUE(unload.get().ok());
  EXPECT_TRUE(request.get().ok());
  EXPECT_TRUE(registry_.Ready().ok());
}

}  // namespace
}  // namespace attendant
