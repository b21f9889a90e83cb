// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace attendant {

// A bound on the bytes that all calls hold at one time. It must outlive its shares. Thread-safe.
class ByteBudget {
 public:
  // Bytes of the budget; the destructor gives them back. A default share holds none.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { Swap(other); }
    // Gives back what this share held at once; `other` then holds none.
    Share& operator=(Share&& other) noexcept {
      Share taken(std::move(other));
      Swap(taken);
      return *this;
    }
    ~Share() {
      if (budget_ != nullptr) budget_->Release(bytes_);
    }

    int64_t bytes() const { return bytes_; }

    // Holds the bytes of both. REQUIRES: of the same budget, or one is empty.
    void Add(Share other) {
      if (budget_ == nullptr) return std::swap(*this, other);
      bytes_ += std::exchange(other.bytes_, 0);
    }
    // Gives back what is more than `bytes`.
    void ShrinkTo(int64_t bytes) {
      if (bytes >= bytes_) return;
      budget_->Release(bytes_ - bytes);
      bytes_ = bytes;
    }
    // Keeps `owner`, which holds the budget, until the share is given back.
    void Keep(std::shared_ptr<const void> owner) { owner_ = std::move(owner); }

   private:
    friend class ByteBudget;
    Share(ByteBudget& budget, int64_t bytes) : budget_(&budget), bytes_(bytes) {}
    void Swap(Share& other) {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      std::swap(owner_, other.owner_);
    }

    std::shared_ptr<const void> owner_;
    ByteBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  // Error messages of a few hundred bytes may exceed a budget by a sixteenth, at least 64 KiB: a
  // client is told that the budget is full.
  enum class Use { kData, kError };

  struct Options {
    std::string what;  // that is bounded, for errors: "requests in work"
    std::string flag;  // that sets the bound
    int64_t limit = 0;
    ByteBudget* whole = nullptr;                 // what this budget takes, it takes of that one too
    std::function<void()> on_refused = nullptr;  // counts
  };
  explicit ByteBudget(Options options) : options_(std::move(options)) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  // RESOURCE_EXHAUSTED, with both numbers and a retry hint, when `bytes` do not fit now.
  // INVALID_ARGUMENT when they never can beside the `held` bytes that the caller has already.
  absl::StatusOr<Share> Acquire(int64_t bytes, int64_t held = 0, Use use = Use::kData);

  int64_t taken() const {
    absl::MutexLock lock(&mutex_);
    return taken_;
  }

 private:
  absl::Status Take(int64_t bytes, int64_t held, Use use);
  void Release(int64_t bytes);

  const Options options_;
  mutable absl::Mutex mutex_;
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant
