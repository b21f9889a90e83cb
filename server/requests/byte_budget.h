// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace attendant {

// A bound on the bytes that many calls hold at one time. Must outlive its shares. Thread-safe.
class ByteBudget {
 public:
  // Bytes of the budget, given back when the share goes. An empty one holds nothing.
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
      if (budget_ != nullptr) budget_->GiveBack(bytes_);
    }

    int64_t bytes() const { return bytes_; }

   private:
    friend class ByteBudget;
    Share(ByteBudget& budget, int64_t bytes) : budget_(&budget), bytes_(bytes) {}

    ByteBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  // `what` and `flag` are for errors: "the requests in work" are bounded by "--max_...".
  ByteBudget(std::string what, std::string flag, int64_t limit)
      : what_(std::move(what)), flag_(std::move(flag)), limit_(limit) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  // RESOURCE_EXHAUSTED, with both numbers and a retry hint, when it does not fit now.
  absl::StatusOr<Share> Take(int64_t bytes);

 private:
  void GiveBack(int64_t bytes);

  const std::string what_;
  const std::string flag_;
  const int64_t limit_;
  absl::Mutex mutex_;
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant
