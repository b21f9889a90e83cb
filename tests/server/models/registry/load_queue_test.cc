// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/load_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LoadQueueTest : public testing::Test {
 protected:
  using Kind = LoadJob::Kind;

  absl::Status Add(Kind kind, const std::string& name, const std::string& caller) {
    LoadQueue::Done done = Caller(caller);
    const absl::Status status = queue_.Add({.kind = kind, .name = name}, done);
    EXPECT_EQ(done == nullptr, status.ok()) << "a refused caller is left to whoever adds";
    return status;
  }
  // Notes in `told_` that it was called, and how.
  LoadQueue::Done Caller(const std::string& caller) {
    return [this, caller](const absl::Status& status) {
      told_.push_back(status.ok() ? caller : absl::StrCat(caller, ": ", status.message()));
    };
  }
  // The callers, in their order.
  std::vector<std::string> Tell(std::vector<LoadQueue::Done> callers) {
    for (LoadQueue::Done& done : callers) done(absl::OkStatus());
    return std::exchange(told_, {});
  }
  // "kind name" of the job that begins; "" when none waits.
  std::string Begin() {
    const std::optional<LoadJob> job = queue_.Begin();
    if (!job.has_value()) return "";
    constexpr const char* kKinds[] = {"load", "unload", "load-idle", "retry"};
    return absl::StrCat(kKinds[static_cast<int>(job->kind)], " ", job->name);
  }

  LoadQueue queue_;
  std::vector<std::string> told_;
};

TEST_F(LoadQueueTest, JobsBeginInTheirOrder) {
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(Begin(), "");
  ASSERT_TRUE(Add(Kind::kLoad, "a", "first").ok());
  ASSERT_TRUE(Add(Kind::kLoad, "b", "second").ok());
  EXPECT_FALSE(queue_.empty());
  EXPECT_EQ(Begin(), "load a");
  EXPECT_THAT(Tell(queue_.End()), ElementsAre("first"));
  EXPECT_THAT(Tell(queue_.End()), IsEmpty()) << "each caller is told once";
  EXPECT_EQ(Begin(), "load b");
  EXPECT_TRUE(queue_.empty()) << "a job that runs does not wait";
  EXPECT_THAT(Tell(queue_.End()), ElementsAre("second"));
}

TEST_F(LoadQueueTest, AJobJoinsTheLastOneOfItsModelIfThatIsToDoTheSame) {
  ASSERT_TRUE(Add(Kind::kLoad, "a", "1").ok());
  ASSERT_TRUE(Add(Kind::kLoad, "b", "2").ok());
  ASSERT_TRUE(Add(Kind::kLoad, "a", "joins 1").ok());
  ASSERT_TRUE(Add(Kind::kUnload, "a", "3").ok());
  ASSERT_TRUE(Add(Kind::kLoad, "a", "after 3").ok());
  ASSERT_TRUE(Add(Kind::kLoadIdle, "b", "5").ok());
  EXPECT_EQ(Begin(), "load a");
  EXPECT_THAT(Tell(queue_.End()), ElementsAre("1", "joins 1"));
  EXPECT_EQ(Begin(), "load b");
  EXPECT_THAT(Tell(queue_.End()), ElementsAre("2"));
  EXPECT_EQ(Begin(), "unload a");
  EXPECT_THAT(Tell(queue_.End()), ElementsAre("3"));
  EXPECT_EQ(Begin(), "load a");
  EXPECT_THAT(Tell(queue_.End()), ElementsAre("after 3"));
  EXPECT_EQ(Begin(), "load-idle b");
  EXPECT_THAT(Tell(queue_.End()), ElementsAre("5"));
  EXPECT_EQ(Begin(), "");
}

// It may have read the files before they changed.
TEST_F(LoadQueueTest, NoJobJoinsTheOneThatRuns) {
  ASSERT_TRUE(Add(Kind::kLoad, "a", "runs").ok());
  EXPECT_EQ(Begin(), "load a");
  ASSERT_TRUE(Add(Kind::kLoad, "a", "waits").ok());
  EXPECT_THAT(Tell(queue_.End()), ElementsAre("runs"));
  EXPECT_EQ(Begin(), "load a");
  EXPECT_THAT(Tell(queue_.End()), ElementsAre("waits"));
}

TEST_F(LoadQueueTest, AFullQueueRefusesNewJobsAndLetsCallersJoin) {
  for (size_t i = 0; i < LoadQueue::kMaxJobs; ++i) {
    ASSERT_TRUE(Add(Kind::kLoad, absl::StrCat("model", i), "").ok());
  }
  EXPECT_EQ(
      Add(Kind::kLoad, "another", ""),
      absl::ResourceExhaustedError("4096 loads and unloads wait already, which is the limit"));
  EXPECT_TRUE(Add(Kind::kLoad, "model7", "").ok());
  EXPECT_EQ(Begin(), "load model0");
  EXPECT_TRUE(Add(Kind::kLoad, "another", "").ok());
}

TEST_F(LoadQueueTest, TheJobsOfTheStartAreNotBoundedAndTellNobody) {
  for (size_t i = 0; i <= LoadQueue::kMaxJobs; ++i) {
    queue_.AddAtStart({.kind = Kind::kLoad, .name = absl::StrCat("model", i)});
  }
  for (size_t i = 0; i <= LoadQueue::kMaxJobs; ++i) {
    ASSERT_EQ(Begin(), absl::StrCat("load model", i));
    ASSERT_THAT(queue_.End(), IsEmpty());
  }
}

TEST_F(LoadQueueTest, AJobOfTheStartJoinsToo) {
  queue_.AddAtStart({.kind = Kind::kLoad, .name = "a"});
  queue_.AddAtStart({.kind = Kind::kLoad, .name = "a"});
  ASSERT_TRUE(Add(Kind::kLoad, "a", "joins").ok());
  EXPECT_EQ(Begin(), "load a");
  EXPECT_THAT(Tell(queue_.End()), ElementsAre("joins"));
  EXPECT_EQ(Begin(), "");
}

TEST_F(LoadQueueTest, RemoveTakesOutTheJobsOfOneKindAndModel) {
  ASSERT_TRUE(Add(Kind::kLoadIdle, "a", "1").ok());
  ASSERT_TRUE(Add(Kind::kLoad, "a", "2").ok());
  ASSERT_TRUE(Add(Kind::kLoadIdle, "b", "3").ok());
  ASSERT_TRUE(Add(Kind::kLoadIdle, "a", "4").ok());
  ASSERT_TRUE(Add(Kind::kLoadIdle, "a", "5").ok());
  EXPECT_THAT(Tell(queue_.Remove({.kind = Kind::kLoadIdle, .name = "a"})),
              ElementsAre("1", "4", "5"));
  EXPECT_THAT(queue_.Remove({.kind = Kind::kLoadIdle, .name = "a"}), IsEmpty());
  EXPECT_EQ(Begin(), "load a");
  EXPECT_EQ(Begin(), "load-idle b");
  EXPECT_EQ(Begin(), "");
}

TEST_F(LoadQueueTest, ACloseReturnsAllCallersAndRefusesNewOnes) {
  ASSERT_TRUE(Add(Kind::kLoad, "a", "runs").ok());
  EXPECT_EQ(Begin(), "load a");
  ASSERT_TRUE(Add(Kind::kUnload, "a", "1").ok());
  ASSERT_TRUE(Add(Kind::kLoad, "b", "2").ok());
  EXPECT_FALSE(queue_.closed());
  EXPECT_THAT(Tell(queue_.Close()), ElementsAre("runs", "1", "2"));
  EXPECT_TRUE(queue_.closed());
  EXPECT_TRUE(queue_.empty());
  EXPECT_THAT(queue_.End(), IsEmpty()) << "the job that runs ends unheard";
  EXPECT_EQ(Add(Kind::kLoad, "c", ""), absl::UnavailableError("the server is stopping"));
  queue_.AddAtStart({.kind = Kind::kLoad, .name = "c"});
  EXPECT_EQ(Begin(), "");
  EXPECT_THAT(queue_.Close(), IsEmpty());
}

}  // namespace
}  // namespace attendant
