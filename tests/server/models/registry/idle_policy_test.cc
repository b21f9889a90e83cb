// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/idle_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/server/models/registry/stub_model.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kUnloadIdle = absl::Minutes(10);
constexpr absl::Duration kFirstRetry = absl::Seconds(5);

class IdlePolicyTest : public testing::Test {
 protected:
  // A version that serves and was last used so long ago.
  ModelEntry& AddReady(const std::string& name, absl::Duration unused, int64_t version = 1) {
    auto model = std::make_unique<StubModel>(name, version);
    model->last_used_ns = absl::ToUnixNanos(now_ - unused);
    ModelEntry& entry = Add(name, ModelState::kReady, version);
    entry.status.model = std::move(model);
    return entry;
  }
  ModelEntry& Add(const std::string& name, ModelState state, int64_t version = 1) {
    ModelEntry& entry = entries_.emplace_back();
    entry.status.name = name;
    entry.status.version = version;
    entry.status.state = state;
    return entry;
  }
  ModelEntry& AddRetry(const std::string& name, absl::Duration due_in) {
    ModelEntry& entry = Add(name, ModelState::kIdleFailed);
    entry.next_try = now_ + due_in;
    return entry;
  }
  std::vector<std::string> IdleModels() const { return policy_.IdleModels(entries_, now_); }
  absl::Duration Next() const { return policy_.NextTime(entries_, now_) - now_; }
  std::string DueRetry() const {
    const ModelEntry* const due = IdlePolicy::DueRetry(entries_, now_);
    return due == nullptr ? "" : due->status.name;
  }

  const absl::Time now_ = absl::FromUnixSeconds(100'000);
  const IdlePolicy policy_{RegistryOptions{.unload_idle = kUnloadIdle, .first_retry = kFirstRetry}};
  std::vector<ModelEntry> entries_;
};

TEST_F(IdlePolicyTest, AModelIsIdleAfterItsTimeWithoutRequests) {
  EXPECT_EQ(Next(), absl::InfiniteDuration());
  AddReady("long", kUnloadIdle);
  AddReady("short", kUnloadIdle - absl::Seconds(1));
  EXPECT_THAT(IdleModels(), ElementsAre("long"));
  EXPECT_EQ(Next(), absl::ZeroDuration());
  entries_.erase(entries_.begin());
  EXPECT_THAT(IdleModels(), IsEmpty());
  EXPECT_EQ(Next(), absl::Seconds(1));
}

TEST_F(IdlePolicyTest, WithoutSuchATimeNoModelIsIdle) {
  AddReady("a", absl::Hours(24));
  const IdlePolicy policy(RegistryOptions{.first_retry = kFirstRetry});
  EXPECT_THAT(policy.IdleModels(entries_, now_), IsEmpty());
  EXPECT_EQ(policy.NextTime(entries_, now_), absl::InfiniteFuture());
}

TEST_F(IdlePolicyTest, AModelInUseIsNotIdle) {
  const std::shared_ptr<ServableModel> request = AddReady("a", kUnloadIdle).status.model;
  EXPECT_THAT(IdleModels(), IsEmpty());
  EXPECT_EQ(Next(), kUnloadIdle) << "its time begins when it is used no more";
}

TEST_F(IdlePolicyTest, AModelThatHasStalledIsInUse) {
  AddReady("a", kUnloadIdle).status.stalled_workers = 1;
  EXPECT_THAT(IdleModels(), IsEmpty());
  EXPECT_EQ(Next(), kUnloadIdle);
}

TEST_F(IdlePolicyTest, WhatIsBuiltInIsNeverIdle) {
  AddReady("attention", kUnloadIdle).built_in = true;
  EXPECT_THAT(IdleModels(), IsEmpty());
  EXPECT_EQ(Next(), absl::InfiniteDuration());
}

TEST_F(IdlePolicyTest, AllVersionsOfAModelBecomeIdleTogether) {
  AddReady("a", kUnloadIdle, 1);
  AddReady("a", absl::Seconds(3), 2);
  AddReady("b", kUnloadIdle, 1);
  AddReady("b", kUnloadIdle, 2);
  EXPECT_THAT(IdleModels(), ElementsAre("b"));
  entries_.resize(2);
  EXPECT_EQ(Next(), kUnloadIdle - absl::Seconds(3));
}

TEST_F(IdlePolicyTest, AVersionThatDoesNotServeKeepsNoOtherLoaded) {
  AddReady("a", kUnloadIdle, 1);
  Add("a", ModelState::kFailed, 2);
  EXPECT_THAT(IdleModels(), ElementsAre("a"));
}

TEST_F(IdlePolicyTest, AModelThatCouldNotBeLoadedAnewStaysLoaded) {
  AddReady("a", kUnloadIdle, 1);
  ModelEntry& failed = AddReady("a", kUnloadIdle, 2);
  failed.status.error = absl::InternalError("broken");
  failed.load_owed = true;
  EXPECT_THAT(IdleModels(), IsEmpty());
  EXPECT_EQ(Next(), absl::InfiniteDuration());
}

// No load of its own has failed.
TEST_F(IdlePolicyTest, AModelThatCouldNotBeLookedUpBecomesIdle) {
  AddReady("a", kUnloadIdle).status.error = absl::UnavailableError("stale handle");
  EXPECT_THAT(IdleModels(), ElementsAre("a"));
  EXPECT_EQ(Next(), absl::ZeroDuration());
}

TEST_F(IdlePolicyTest, TheRetryThatIsDueTheLongestComesFirst) {
  AddRetry("later", absl::Seconds(2));
  EXPECT_EQ(DueRetry(), "");
  EXPECT_EQ(Next(), absl::Seconds(2));
  AddRetry("second", absl::ZeroDuration());
  EXPECT_EQ(DueRetry(), "second");
  AddRetry("first", absl::Seconds(-1));
  EXPECT_EQ(DueRetry(), "first");
  EXPECT_EQ(Next(), absl::Seconds(-1));
}

TEST_F(IdlePolicyTest, AModelForWhichMemoryWasShortIsNotTriedAgainWithoutRequests) {
  ModelEntry& entry = Add("a", ModelState::kIdle);
  for (int times = 1; times <= 3; ++times) {
    policy_.FailLoad(entry, absl::ResourceExhaustedError("memory is short"), now_);
    EXPECT_EQ(entry.status.state, ModelState::kIdle);
    EXPECT_EQ(entry.next_try, now_ + kFirstRetry) << times;
  }
  entry.next_try = now_;
  EXPECT_EQ(DueRetry(), "");
  EXPECT_EQ(Next(), absl::InfiniteDuration());
}

TEST_F(IdlePolicyTest, EachRetryWaitsForTwiceAsLongUpToAMinute) {
  ModelEntry& entry = Add("a", ModelState::kIdle);
  for (int seconds : {5, 10, 20, 40, 60, 60}) {
    policy_.FailLoad(entry, absl::InternalError("broken"), now_);
    EXPECT_EQ(entry.status.state, ModelState::kIdleFailed);
    EXPECT_EQ(entry.next_try, now_ + absl::Seconds(seconds));
  }
  policy_.FailLoad(entry, absl::ResourceExhaustedError("memory is short"), now_);
  EXPECT_EQ(entry.next_try, now_ + kFirstRetry);
}

}  // namespace
}  // namespace attendant
