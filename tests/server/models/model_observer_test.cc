// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/metrics/model_metrics.h"
#include "server/metrics/server_metrics.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

class ModelObserverTest : public testing::Test {
 protected:
  // The page of metrics has this line.
  void Expect(const std::string& line) { EXPECT_THAT(metrics_.Scrape(), HasSubstr(line + "\n")); }

  ServerMetrics metrics_{"test"};
  std::shared_ptr<ModelMetrics> model_ = metrics_.ForModel("m");
};

// Two versions of a model are observed by one each, and count together.
TEST_F(ModelObserverTest, QueuesAddUpAndGoWithTheirBatcher) {
  auto first = std::make_unique<ModelObserver>(*model_);
  auto second = std::make_unique<ModelObserver>(*model_);
  first->OnQueueChanged(100, 3);
  second->OnQueueChanged(10, 2);
  first->OnQueueChanged(50, 1);
  Expect(R"(attendant_queue_tokens{model="m"} 60)");
  Expect(R"(attendant_queue_requests{model="m"} 3)");
  first->OnStalled(2);
  second->OnStalled(1);
  first->OnStalled(1);
  Expect(R"(attendant_stalled_workers{model="m"} 2)");
  first->OnLost(1);
  first->OnLost(2);
  second->OnLost(1);
  Expect(R"(attendant_lost_workers{model="m"} 3)");
  first.reset();
  Expect(R"(attendant_queue_tokens{model="m"} 10)");
  Expect(R"(attendant_queue_requests{model="m"} 2)");
  Expect(R"(attendant_stalled_workers{model="m"} 1)");
  Expect(R"(attendant_lost_workers{model="m"} 1)");
  second.reset();
  Expect(R"(attendant_queue_tokens{model="m"} 0)");
  Expect(R"(attendant_stalled_workers{model="m"} 0)");
  Expect(R"(attendant_lost_workers{model="m"} 0)");
}

struct Counter final : BatchListener {
  ~Counter() override {
    if (ended != nullptr) *ended = true;
  }
  void OnBatch(int64_t batch_sequences, absl::Duration batch_compute) override {
    sequences += batch_sequences;
    compute += batch_compute;
  }

  int64_t sequences = 0;
  absl::Duration compute;
  bool* ended = nullptr;
};

struct OtherCounter final : BatchListener {
  void OnBatch(int64_t /*sequences*/, absl::Duration /*compute*/) override { ++batches; }

  int batches = 0;
};

TEST_F(ModelObserverTest, ListenersHearOfBatchesAndGoWithTheObserver) {
  auto observer = std::make_unique<ModelObserver>(*model_);
  observer->OnBatch(10, 2, 1, absl::Milliseconds(1));  // nobody listens yet
  Counter& counter = observer->ListenerOf<Counter>();
  OtherCounter& other = observer->ListenerOf<OtherCounter>();
  EXPECT_EQ(&observer->ListenerOf<Counter>(), &counter) << "one of each type";
  observer->OnBatch(10, 3, 2, absl::Milliseconds(2));
  observer->OnBatch(10, 4, 1, absl::Milliseconds(3));
  EXPECT_EQ(counter.sequences, 7);
  EXPECT_EQ(counter.compute, absl::Milliseconds(5));
  EXPECT_EQ(other.batches, 2);
  EXPECT_EQ(ModelObserver(*model_).ListenerOf<Counter>().sequences, 0) << "of another instance";
  bool ended = false;
  counter.ended = &ended;
  observer.reset();
  EXPECT_TRUE(ended);
}

TEST_F(ModelObserverTest, ThreadsFindTheSameListener) {
  ModelObserver observer(*model_);
  std::vector<Counter*> found(4);
  {
    std::vector<std::jthread> threads;
    for (Counter*& one : found) {
      threads.emplace_back([&] { one = &observer.ListenerOf<Counter>(); });
    }
  }
  EXPECT_THAT(found, testing::Each(found.front()));
  observer.OnBatch(10, 3, 1, absl::Milliseconds(1));
  EXPECT_EQ(found.front()->sequences, 3);
}

}  // namespace
}  // namespace attendant
