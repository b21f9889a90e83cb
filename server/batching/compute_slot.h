// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/threads/threading.h"

namespace attendant {

// Processors that the workers of several models share: one of them computes at a time. Of the time
// that busy models compute, each has a share in proportion to its weight: start-time fair queueing
// (Goyal, Vin, Cheng 1996) by the time that batches took. A batch is never interrupted. A model
// that has been idle for long waits for at most one batch of each other one. A busy one waits,
// after each of its batches, until the others have had their share for its time: behind a batch of
// 200 ms seven of 30 ms, for equal weights. Thread-safe.
class ComputeSlot {
 public:
  explicit ComputeSlot(Threading& threading = Threading::System()) : threading_(threading) {}

  // One worker. Thread-confined. The slot must outlive it.
  class User {
   public:
    // REQUIRES: weight > 0.
    User(ComputeSlot& slot, double weight);

   private:
    friend class ComputeSlot;
    ComputeSlot& slot_;
    const double weight_;
    const std::unique_ptr<Threading::Condition> called_;
    // Guarded by the slot's mutex.
    absl::Duration served_;  // the time that it computed over its weight, or the slot's if later
  };

  // The turn of a user, held from construction to destruction.
  class Turn {
   public:
    // Waits for the turn. Before it waits it calls `busy`.
    template <typename Busy>
    Turn(User* user, Busy busy) : user_(user) {
      if (user_ == nullptr || user_->slot_.TryBegin(*user_)) return;
      busy();
      user_->slot_.Begin(*user_);
    }
    ~Turn() {
      if (user_ != nullptr) user_->slot_.End(*user_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    User* const user_;  // null: nothing is shared, and it is always its turn
  };

 private:
  struct Order {
    bool operator()(const User* a, const User* b) const;
  };

  bool TryBegin(User& user);
  void Begin(User& user);
  void End(User& user);
  void Start(User& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Threading& threading_;
  absl::Mutex mutex_;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time began_ ABSL_GUARDED_BY(mutex_);
  absl::Duration served_ ABSL_GUARDED_BY(mutex_);  // of the user whose turn began last, then
  std::set<User*, Order> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
