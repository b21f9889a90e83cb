// SPDX-License-Identifier: Apache-2.0
// Completion exactly once, under every race of completion, cancellation, deadline, full queue,
// failing batches, drain and destruction.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/threads/steady_time.h"
#include "tests/server/batching/batcher_fixture.h"

namespace attendant {
namespace {

constexpr int kClients = 8;
constexpr int kRequestsPerClient = 400;

class BatcherStressTest : public BatcherTest, public testing::WithParamInterface<int> {
 protected:
  struct Client {
    std::vector<std::atomic<int>> completions = std::vector<std::atomic<int>>(kRequestsPerClient);
    std::vector<std::vector<int>> lens = std::vector<std::vector<int>>(kRequestsPerClient);
  };

  void Check(const std::vector<int>& lens, int32_t first_id,
             const absl::StatusOr<FinishedWork>& finished) {
    codes_[static_cast<size_t>(finished.status().code())].fetch_add(1);
    if (!finished.ok()) return;
    const std::vector<SequenceResult>& results = std::get<EncodeWork>(finished->work).results;
    ASSERT_EQ(results.size(), lens.size());
    for (size_t i = 0; i < lens.size(); ++i) {
      const int32_t first = first_id + 100 * static_cast<int32_t>(i);
      const int32_t sum = lens[i] * first + lens[i] * (lens[i] - 1) / 2;
      ASSERT_EQ(results[i].pooled,
                (std::vector<float>{static_cast<float>(sum), static_cast<float>(lens[i])}));
    }
  }

  // Until a batch has succeeded and one has failed. On a busy machine this client may be the first
  // thread that runs at all.
  void AwaitBatches() const {
    const absl::Time limit = SteadyNow() + absl::Seconds(30);
    for (const absl::StatusCode code : {absl::StatusCode::kOk, absl::StatusCode::kInternal}) {
      while (codes_[static_cast<size_t>(code)].load() == 0 && SteadyNow() < limit) {
        std::this_thread::yield();
      }
    }
  }

  void RunClient(int seed, Client& client) {
    std::minstd_rand random(static_cast<unsigned>(seed));
    const auto pick = [&random](int below) {
      return static_cast<int>(random() % static_cast<unsigned>(below));
    };
    Answer unused;
    for (size_t i = 0; i < kRequestsPerClient; ++i) {
      if (seed == 1 && i == kRequestsPerClient / 2) {
        AwaitBatches();
        batcher_->Drain(SteadyNow());
      }
      client.lens[i].resize(static_cast<size_t>(1 + pick(6)));
      for (int& len : client.lens[i]) len = 1 + pick(10);
      const int32_t first_id = 1 + pick(50);
      WorkRequest request = Request(first_id, client.lens[i], unused);
      request.priority = pick(3);
      if (pick(3) == 0) request.deadline = SteadyNow() + absl::Microseconds(pick(800));
      request.done = [this, &client, i, first_id](const absl::StatusOr<FinishedWork>& finished) {
        client.completions[i].fetch_add(1);
        Check(client.lens[i], first_id, finished);
      };
      const RequestId id = batcher_->Submit(std::move(request));
      if (pick(3) == 0) batcher_->Cancel(id);
      const bool wait = pick(6) == 0;  // so that the queue is not always full
      while (wait && client.completions[i].load() == 0) std::this_thread::yield();
    }
  }

  void AwaitCompletions(int wanted) const {
    int completed = 0;
    do {
      std::this_thread::yield();
      completed = 0;
      for (const std::atomic<int>& count : codes_) completed += count.load();
    } while (completed < wanted);
  }

  std::vector<std::atomic<int>> codes_ = std::vector<std::atomic<int>>(17);
};

TEST_P(BatcherStressTest, EveryRequestCompletesExactlyOnce) {
  engine_.SetVerdict([](const PackedBatch& batch) {
    return batch.token_ids()[0] % 5 == 0 ? absl::InternalError("no") : absl::OkStatus();
  });
  Start(Options(), GetParam());
  std::vector<Client> clients(kClients);
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back(
        [this, &clients, i] { RunClient(i + 1, clients[static_cast<size_t>(i)]); });
  }
  for (std::thread& thread : threads) thread.join();
  batcher_.reset();
  AwaitCompletions(kClients * kRequestsPerClient);
  for (const Client& client : clients) {
    for (const std::atomic<int>& count : client.completions) ASSERT_EQ(count.load(), 1);
  }
  // The races happened: each way to end was taken.
  for (const absl::StatusCode code :
       {absl::StatusCode::kOk, absl::StatusCode::kCancelled, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kResourceExhausted, absl::StatusCode::kInternal,
        absl::StatusCode::kUnavailable}) {
    EXPECT_GT(codes_[static_cast<size_t>(code)].load(), 0) << absl::StatusCodeToString(code);
  }
  EXPECT_EQ(observer_.queue(), (std::pair<int64_t, int64_t>(0, 0)));
}

INSTANTIATE_TEST_SUITE_P(Workers, BatcherStressTest, testing::Values(1, 3));

}  // namespace
}  // namespace attendant
