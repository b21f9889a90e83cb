// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/batching/batcher.h"
#include "server/requests/byte_budget.h"

namespace attendant {

// One request as its transport and its run share it: whether the client has cancelled it, and the
// memory that it is accounted for. The transport keeps the state until the answer is written, and
// gives the memory back with it. Thread-safe.
class CallState {
 public:
  // `on_admitted` is called with the bytes of the coming answer: at most once, before the answer.
  explicit CallState(std::function<void(int64_t response_bytes)> on_admitted = nullptr)
      : on_admitted_(std::move(on_admitted)) {}

  // Callable at any time: before the request is submitted, after, or when it is answered.
  void Cancel();
  bool cancelled() const;

  // Makes Cancel reach the submitted request. `batcher` must outlive the state's last Cancel.
  void SetSubmitted(Batcher& batcher, RequestId id);

  void RetainRequest(ByteBudget::Share share);
  void RetainResponse(ByteBudget::Share share);
  void ReleaseRequest();  // once the request's memory is freed

 private:
  const std::function<void(int64_t)> on_admitted_;
  mutable absl::Mutex mutex_;
  Batcher* batcher_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null: not submitted
  RequestId id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  ByteBudget::Share request_ ABSL_GUARDED_BY(mutex_);
  ByteBudget::Share response_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
