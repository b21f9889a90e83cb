// SPDX-License-Identifier: Apache-2.0
#include "server/requests/memory/memory_budgets.h"

#include <utility>

namespace attendant {
namespace {

constexpr const char* kRequestFlag = "--max_pending_request_bytes";
constexpr const char* kResponseFlag = "--max_pending_response_bytes";
constexpr const char* kStreamFlag = "--max_open_stream_bytes";

}  // namespace

absl::StatusOr<ByteBudget::Share> ConnectionBudgets::AcquireRequest(int64_t bytes, int64_t held) {
  return Keep(requests_.Acquire(bytes, held));
}

absl::StatusOr<ByteBudget::Share> ConnectionBudgets::AcquireResponse(int64_t bytes, int64_t held,
                                                                     ByteBudget::Use use) {
  return Keep(responses_.Acquire(bytes, held, use));
}

absl::StatusOr<ByteBudget::Share> ConnectionBudgets::AcquireStream(int64_t head_bytes) {
  return Keep(streams_.Acquire(kStreamBytes + head_bytes));
}

absl::StatusOr<ByteBudget::Share> ConnectionBudgets::Keep(absl::StatusOr<ByteBudget::Share> share) {
  if (share.ok()) share->Keep(shared_from_this());
  return share;
}

MemoryBudgets::MemoryBudgets(const MemoryLimits& limits, ServerMetrics* metrics)
    : limits_(limits),
      metrics_(metrics),
      requests_(Make("requests in work", kRequestFlag, limits.max_pending_request_bytes,
                     Refusal::kRequestMemory)),
      responses_(Make("answers in work or not yet read by their clients", kResponseFlag,
                      limits.max_pending_response_bytes, Refusal::kResponseMemory)),
      streams_(
          Make("open streams", kStreamFlag, limits.max_open_stream_bytes, Refusal::kStreamMemory)),
      waits_(
          {.limit = limits.max_waiting_call_bytes, .on_gave_way = Counter(Refusal::kCallMemory)}) {}

std::function<void()> MemoryBudgets::Counter(Refusal reason) {
  return [this, reason] {
    if (metrics_ != nullptr) metrics_->CountRefused(reason);
  };
}

ByteBudget::Options MemoryBudgets::Make(const char* what, const char* flag, int64_t limit,
                                        Refusal reason) {
  return {.what = what, .flag = flag, .limit = limit, .on_refused = Counter(reason)};
}

std::shared_ptr<ConnectionBudgets> MemoryBudgets::ForConnection(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  std::weak_ptr<ConnectionBudgets>& known = connections_[peer];
  if (std::shared_ptr<ConnectionBudgets> budgets = known.lock()) return budgets;
  ByteBudget::Options requests =
      Make("requests of this connection in work", "a part of --max_pending_request_bytes",
           limits_.connection_request_bytes, Refusal::kConnectionMemory);
  requests.whole = &requests_;
  ByteBudget::Options responses =
      Make("answers of this connection, in work or not yet read,",
           "a part of --max_pending_response_bytes", limits_.connection_response_bytes,
           Refusal::kConnectionMemory);
  responses.whole = &responses_;
  ByteBudget::Options streams =
      Make("open streams of this connection", "a part of --max_open_stream_bytes",
           limits_.connection_stream_bytes, Refusal::kConnectionMemory);
  streams.whole = &streams_;
  const auto forget = [this, peer](ConnectionBudgets* budgets) {
    delete budgets;
    Forget(peer);
  };
  const std::shared_ptr<ConnectionBudgets> budgets(
      new ConnectionBudgets(std::move(requests), std::move(responses), std::move(streams), waits_),
      forget);
  known = budgets;
  return budgets;
}

void MemoryBudgets::AddHeld(std::span<ConnectionReport> reports) {
  for (ConnectionReport& report : reports) {
    std::shared_ptr<ConnectionBudgets> budgets;  // freed without the lock, which Forget takes
    {
      absl::MutexLock lock(&mutex_);
      const auto found = connections_.find(report.peer);
      if (found != connections_.end()) budgets = found->second.lock();
    }
    if (budgets == nullptr) continue;
    report.request_memory_bytes = budgets->request_bytes();
    report.response_memory_bytes = budgets->response_bytes();
    report.stream_memory_bytes = budgets->stream_bytes();
    report.call_memory_bytes = budgets->call_bytes();
  }
}

void MemoryBudgets::Forget(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  const auto found = connections_.find(peer);
  if (found != connections_.end() && found->second.expired()) connections_.erase(found);
}

}  // namespace attendant
