// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <limits>

#include "tests/bench/simulator/scheduler.h"

namespace attendant::bench {
namespace {

// A batch padded to its longest member. Its sequences all cost as much as the longest.
SimulatedBatch Padded(std::vector<Member> members) {
  int64_t longest = 0;
  for (const Member& member : members) longest = std::max(longest, member.len);
  SimulatedBatch batch{.members = std::move(members)};
  for (size_t i = 0; i < batch.members.size(); ++i) batch.computed.Add(longest);
  return batch;
}

bool Shorter(const Member& a, const Member& b) { return a.len < b.len; }

class PaddedFifo final : public Scheduler {
 public:
  explicit PaddedFifo(const SchedulerOptions& options) : options_(options) {}

  std::string name() const override { return "padded FIFO"; }

  void Arrive(size_t index, const Arrival& arrival) override {
    for (const int64_t len : arrival.lens) queue_.push_back({index, len});
  }

  SimulatedBatch Take(absl::Time /*now*/) override {
    std::vector<Member> members;
    int64_t longest = 0;
    while (!queue_.empty()) {
      longest = std::max(longest, queue_.front().len);
      const int64_t count = static_cast<int64_t>(members.size()) + 1;
      const bool fits =
          count <= options_.max_batch_sequences && count * longest <= options_.max_batch_tokens;
      if (!fits && !members.empty()) break;
      members.push_back(queue_.front());
      queue_.pop_front();
    }
    return Padded(std::move(members));
  }

 private:
  const SchedulerOptions options_;
  std::deque<Member> queue_;
};

class SortedWindow final : public Scheduler {
 public:
  explicit SortedWindow(const SchedulerOptions& options) : sorted_(options) {}

  std::string name() const override { return "sorted 10 ms window"; }

  void Arrive(size_t index, const Arrival& arrival) override {
    if (window_.empty()) opened_ = arrival.at;
    for (const int64_t len : arrival.lens) window_.push_back({index, len});
  }

  SimulatedBatch Take(absl::Time now) override {
    constexpr absl::Duration kWindow = absl::Milliseconds(10);
    SimulatedBatch batch = sorted_.Take(now);
    if (!batch.members.empty() || window_.empty()) return batch;
    if (now < opened_ + kWindow)
      return {.members = {}, .computed = {}, .wait_until = opened_ + kWindow};
    std::stable_sort(window_.begin(), window_.end(), Shorter);
    for (const Member& member : window_) sorted_.Arrive(member.request, {.lens = {member.len}});
    window_.clear();
    return sorted_.Take(now);
  }

 private:
  PaddedFifo sorted_;  // of closed windows
  std::vector<Member> window_;
  absl::Time opened_;
};

class PaddedProgram final : public Scheduler {
 public:
  explicit PaddedProgram(const SchedulerOptions& options) : options_(options) {}

  std::string name() const override { return "padded program"; }

  void Arrive(size_t index, const Arrival& arrival) override {
    for (const int64_t len : arrival.lens) waiting_.push_back({index, len});
  }

  SimulatedBatch Take(absl::Time /*now*/) override {
    if (waiting_.empty()) return {};
    // The oldest of a longer queue: planning must not take longer than computing.
    const size_t count = std::min<size_t>(waiting_.size(), 1024);
    const Member oldest = waiting_.front();
    std::vector<Member> sorted(waiting_.begin(), waiting_.begin() + static_cast<long>(count));
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<long>(count));
    std::stable_sort(sorted.begin(), sorted.end(), Shorter);
    const auto [begin, end] = BatchWith(oldest, sorted);
    std::vector<Member> members(sorted.begin() + begin, sorted.begin() + end);
    sorted.erase(sorted.begin() + begin, sorted.begin() + end);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Member& a, const Member& b) { return a.request < b.request; });
    waiting_.insert(waiting_.begin(), sorted.begin(), sorted.end());
    return Padded(std::move(members));
  }

 private:
  // The range of the cheapest plan for `sorted` that holds `member`.
  std::pair<long, long> BatchWith(const Member& member, const std::vector<Member>& sorted) const {
    const size_t n = sorted.size();
    std::vector<double> least(n + 1, std::numeric_limits<double>::infinity());
    std::vector<size_t> start(n + 1);  // of the last batch of the best plan for a prefix
    least[0] = 0;
    for (size_t end = 1; end <= n; ++end) {
      const int64_t len = sorted[end - 1].len;
      const size_t most = static_cast<size_t>(
          std::clamp<int64_t>(options_.max_batch_tokens / len, 1, options_.max_batch_sequences));
      for (size_t size = 1; size <= std::min(most, end); ++size) {
        const auto sequences = static_cast<int64_t>(size);
        const BatchShape shape{sequences, sequences * len, sequences * len * len};
        const double cost = least[end - size] + absl::ToDoubleSeconds(options_.costs.Of(shape));
        if (cost < least[end]) {
          least[end] = cost;
          start[end] = end - size;
        }
      }
    }
    for (size_t end = n; end > 0; end = start[end]) {
      for (size_t i = start[end]; i < end; ++i) {
        if (sorted[i].request == member.request && sorted[i].len == member.len) {
          return {static_cast<long>(start[end]), static_cast<long>(end)};
        }
      }
    }
    return {0, static_cast<long>(n)};  // not reached
  }

  const SchedulerOptions options_;
  std::deque<Member> waiting_;  // in order of arrival
};

}  // namespace

absl::Duration Costs::Of(const BatchShape& shape) const {
  return absl::Milliseconds(batch_ms + sequence_ms * static_cast<double>(shape.sequences) +
                            token_ms * static_cast<double>(shape.tokens) +
                            square_ms * static_cast<double>(shape.squares));
}

std::unique_ptr<Scheduler> MakePaddedFifo(const SchedulerOptions& options) {
  return std::make_unique<PaddedFifo>(options);
}

std::unique_ptr<Scheduler> MakeSortedWindow(const SchedulerOptions& options) {
  return std::make_unique<SortedWindow>(options);
}

std::unique_ptr<Scheduler> MakePaddedProgram(const SchedulerOptions& options) {
  return std::make_unique<PaddedProgram>(options);
}

}  // namespace attendant::bench
