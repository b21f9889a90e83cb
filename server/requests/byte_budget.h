// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/limits/limits.h"

namespace attendant {

// A bound on the bytes that all calls hold at one time. It must outlive its shares. Thread-safe.
class ByteBudget {
 public:
  // Bytes of the budget; the destructor gives them back. A default share holds none.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (budget_ != nullptr) budget_->Release(bytes_);
    }

    int64_t bytes() const { return bytes_; }

   private:
    friend class ByteBudget;
    Share(ByteBudget& budget, int64_t bytes) : budget_(&budget), bytes_(bytes) {}

    ByteBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  // Errors name the bounded thing `what` ("requests in work") and the `flag` that bounds it.
  ByteBudget(std::string what, std::string flag, int64_t limit)
      : what_(std::move(what)), flag_(std::move(flag)), limit_(limit) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  // RESOURCE_EXHAUSTED, with both numbers and a retry hint, when `bytes` do not fit now.
  absl::StatusOr<Share> Acquire(int64_t bytes);

 private:
  void Release(int64_t bytes);

  const std::string what_;
  const std::string flag_;
  const int64_t limit_;
  absl::Mutex mutex_;
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The memory of the requests of all protocols together, until each answer is written. It must
// outlive the models, whose queues hold requests.
struct MemoryBudgets {
  static constexpr absl::string_view kRejected = "memory";  // a label beside the batcher's reasons

  explicit MemoryBudgets(const MemoryLimits& limits = {})
      : requests("requests in work", "--max_pending_request_bytes",
                 limits.max_pending_request_bytes),
        responses("answers in work or not yet read by their clients",
                  "--max_pending_response_bytes", limits.max_pending_response_bytes) {}

  ByteBudget requests;
  ByteBudget responses;
};

}  // namespace attendant
