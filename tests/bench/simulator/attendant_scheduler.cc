// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <map>
#include <utility>

#include "server/batching/batch_policy.h"
#include "server/batching/request_queue.h"
#include "tests/bench/simulator/scheduler.h"

namespace attendant::bench {
namespace {

class AttendantScheduler final : public Scheduler {
 public:
  explicit AttendantScheduler(const SchedulerOptions& options)
      : policy_({.max_batch_tokens = options.max_batch_tokens,
                 .max_batch_sequences = options.max_batch_sequences,
                 .max_priority_wait = absl::Seconds(1)}),
        queue_({.max_tokens = std::numeric_limits<int64_t>::max(),
                .max_requests = std::numeric_limits<int64_t>::max()},
               policy_) {}

  std::string name() const override { return "Attendant"; }

  void Arrive(size_t index, const Arrival& arrival) override {
    QueuedRequest& request = requests_[index];
    request.id = index + 1;
    request.arrival = arrival.at;
    request.priority = arrival.priority;
    request.client = arrival.client;
    for (const int64_t len : arrival.lens) {
      request.encode().sequences.emplace_back().token_ids.resize(static_cast<size_t>(len));
    }
    request.tokens_waiting = request.tokens();
    queue_.Add(request);
  }

  SimulatedBatch Take(absl::Time now) override {
    SimulatedBatch batch;
    const BatchDecision decision = policy_.Decide(queue_.Snapshot(), now);
    if (!decision.run) return {.members = {}, .computed = {}, .wait_until = decision.wait_until};
    items_.clear();
    queue_.TakeBatch(now, items_);
    for (const BatchItem& item : items_) {
      batch.members.push_back({.request = item.request->id - 1, .len = item.tokens()});
      batch.computed.Add(item.tokens());
    }
    for (const BatchItem& item : items_) {
      const size_t index = item.request->id - 1;
      if (const auto found = requests_.find(index);
          found != requests_.end() && !found->second.queued) {
        done_.push_back(requests_.extract(found));
      }
    }
    done_.clear();  // not earlier: other items of the batch may be the same request's
    return batch;
  }

 private:
  const BatchPolicy policy_;
  RequestQueue queue_;
  std::map<size_t, QueuedRequest> requests_;
  std::vector<std::map<size_t, QueuedRequest>::node_type> done_;
  std::vector<BatchItem> items_;
};

}  // namespace

std::unique_ptr<Scheduler> MakeAttendant(const SchedulerOptions& options) {
  return std::make_unique<AttendantScheduler>(options);
}

}  // namespace attendant::bench
