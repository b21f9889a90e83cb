// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/access/call_gate.h"
#include "server/batching/batcher.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/requests/model_waits.h"

namespace attendant {

// The status of a request whose client has gone.
absl::Status CancelledByClient();

// One request as its transport and its run share it: its call, its id, whether the client has
// cancelled it, and the memory that it is accounted for. The transport keeps the state until the
// answer is written, and gives the memory back with it. Thread-safe.
class CallState {
 public:
  // `on_admitted` is called with the bytes of the coming answer: at most once, before the answer.
  CallState(std::shared_ptr<const CallInfo> call, std::shared_ptr<ConnectionBudgets> memory,
            std::function<void(int64_t response_bytes)> on_admitted = nullptr)
      : call_(std::move(call)), memory_(std::move(memory)), on_admitted_(std::move(on_admitted)) {}

  const CallInfo& call() const { return *call_; }

  // Callable at any time: before the request is submitted, after, or when it is answered.
  void Cancel();
  bool cancelled() const;

  // Makes Cancel reach the request that waits for its model, until it is submitted. `waits` must
  // outlive the state.
  void SetWaiting(ModelWaits& waits, ModelWaits::Id id);
  // Makes Cancel reach the submitted request, as long as its batcher lives.
  void SetSubmitted(std::weak_ptr<Batcher> batcher, RequestId id);

  // The id that the client chose, if it may be sent back; else empty.
  void SetClientId(std::string id);
  std::string client_id() const;

  // RESOURCE_EXHAUSTED or INVALID_ARGUMENT when the memory does not fit: see ByteBudget. What fits
  // is the request's until ReleaseRequest, or the answer's.
  absl::Status AcquireRequest(int64_t bytes);
  // Like AcquireRequest, for the bytes that are missing to a total of `bytes`.
  absl::Status AcquireRequestUpTo(int64_t bytes);
  // The request holds `share` too, which its transport has acquired while it came.
  void HoldRequest(ByteBudget::Share share);
  // Like AcquireRequest, for an answer of `bytes` in total. REQUIRES: no fewer than it holds
  // already.
  absl::Status AcquireResponse(int64_t bytes);
  int64_t response_bytes() const;  // acquired for the answer
  // The answer is there and takes `bytes`: those that it has not acquired, of the reserve for
  // errors.
  absl::Status AcquireAnswered(int64_t bytes);
  void ReleaseRequest();      // once the request's memory is freed
  bool holds_memory() const;  // of the request or of the answer

  ConnectionBudgets& memory() { return *memory_; }

 private:
  using OnCancel = absl::AnyInvocable<void()>;

  int64_t request_bytes() const;
  // Replaces the callback. The callback runs once: in Cancel, or here if Cancel was called before.
  void SetOnCancel(OnCancel on_cancel);

  const std::shared_ptr<const CallInfo> call_;
  const std::shared_ptr<ConnectionBudgets> memory_;
  const std::function<void(int64_t)> on_admitted_;
  mutable absl::Mutex mutex_;
  OnCancel on_cancel_ ABSL_GUARDED_BY(mutex_);  // null: the request is not submitted, nor waits
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::string client_id_ ABSL_GUARDED_BY(mutex_);
  ByteBudget::Share request_ ABSL_GUARDED_BY(mutex_);
  ByteBudget::Share response_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
