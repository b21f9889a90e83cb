// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/access/connections.h"
#include "server/limits/limits.h"
#include "server/metrics/server_metrics.h"
#include "server/requests/memory/byte_budget.h"
#include "server/requests/memory/client_waits.h"

namespace attendant {

// The bytes that the budgets count beside those of messages and tensors.
inline constexpr int64_t kRequestBytes = 16 << 10;  // a request: gRPC's objects and the server's
inline constexpr int64_t kSequenceBytes = 1 << 10;  // a sequence, in its request and in its answer
inline constexpr int64_t kAnswerBytes = 1 << 10;    // an answer
inline constexpr int64_t kStreamBytes = 32 << 10;   // an open stream, beside its requests
inline constexpr int64_t kCallBytes = 20 << 10;     // a gRPC call that waits for its client
// The most that a call's head adds: gRPC takes 8 KiB of fields, each of them 32 bytes and its own.
inline constexpr int64_t kMaxHeadBytes = 72 << 10;

// The memory of one connection's calls, a part of the budget of all calls. Thread-safe.
class ConnectionBudgets : public std::enable_shared_from_this<ConnectionBudgets> {
 public:
  ConnectionBudgets(ByteBudget::Options requests, ByteBudget::Options responses,
                    ByteBudget::Options streams, ClientWaits& waits)
      : requests_(std::move(requests)),
        responses_(std::move(responses)),
        streams_(std::move(streams)),
        waits_(waits) {}

  // Takes bytes of the budget for requests, or for responses, as ByteBudget::Acquire does. A share
  // keeps these budgets alive.
  absl::StatusOr<ByteBudget::Share> AcquireRequest(int64_t bytes, int64_t held = 0);
  absl::StatusOr<ByteBudget::Share> AcquireResponse(int64_t bytes, int64_t held = 0,
                                                    ByteBudget::Use use = ByteBudget::Use::kData);

  // Takes the bytes of one stream for the time that it is open. `head_bytes`: the bytes of its head
  // beyond those of a usual head.
  absl::StatusOr<ByteBudget::Share> AcquireStream(int64_t head_bytes);

  // The connection's calls that wait for their client and hold no share.
  ClientWaits::Connection& waits() { return waits_; }

  int64_t request_bytes() const { return requests_.taken(); }
  int64_t response_bytes() const { return responses_.taken(); }
  int64_t stream_bytes() const { return streams_.taken(); }
  int64_t call_bytes() const { return waits_.bytes(); }

 private:
  absl::StatusOr<ByteBudget::Share> Keep(absl::StatusOr<ByteBudget::Share> share);

  ByteBudget requests_;
  ByteBudget responses_;
  ByteBudget streams_;
  ClientWaits::Connection waits_;
};

// The memory of the requests of all protocols together, until each answer is written, of open
// streams, which a client may leave without a request, and of calls that wait for their clients. It
// must outlive the models, whose queues hold requests, and every connection's budgets. Thread-safe.
class MemoryBudgets {
 public:
  static constexpr absl::string_view kRejected = "memory";  // a label beside the batcher's reasons

  // `metrics`, when there are any, count refusals.
  explicit MemoryBudgets(const MemoryLimits& limits = {}, ServerMetrics* metrics = nullptr);

  // The budgets of a connection, which `peer` names. They last as long as someone keeps them.
  std::shared_ptr<ConnectionBudgets> ForConnection(const std::string& peer);

  // Fills in what the connections hold now.
  void AddHeld(std::span<ConnectionReport> reports);

 private:
  void Forget(const std::string& peer);
  std::function<void()> Counter(Refusal reason);
  ByteBudget::Options Make(const char* what, const char* flag, int64_t limit, Refusal reason);

  const MemoryLimits limits_;
  ServerMetrics* const metrics_;
  ByteBudget requests_;
  ByteBudget responses_;
  ByteBudget streams_;
  ClientWaits waits_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::weak_ptr<ConnectionBudgets>> connections_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
