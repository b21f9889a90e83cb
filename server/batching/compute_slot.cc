// SPDX-License-Identifier: Apache-2.0
#include "server/batching/compute_slot.h"

#include <algorithm>

#include "kernels/core/check.h"

namespace attendant {

ComputeSlot::User::User(ComputeSlot& slot, double weight)
    : slot_(slot), weight_(weight), called_(slot.threading_.MakeCondition()) {
  ATTENDANT_CHECK(weight > 0);
}

bool ComputeSlot::Order::operator()(const User* a, const User* b) const {
  if (a->served_ != b->served_) return a->served_ < b->served_;
  return a < b;
}

bool ComputeSlot::TryBegin(User& user) {
  absl::MutexLock lock(&mutex_);
  if (taken_ || !waiting_.empty()) return false;
  user.served_ = std::max(user.served_, served_);
  Start(user);
  return true;
}

void ComputeSlot::Begin(User& user) {
  absl::MutexLock lock(&mutex_);
  // The time that the user left unused while it was idle is lost: else it could hold the slot for
  // long now.
  user.served_ = std::max(user.served_, served_);
  waiting_.insert(&user);
  while (taken_ || *waiting_.begin() != &user) {
    user.called_->WaitUntil(mutex_, absl::InfiniteFuture());
  }
  waiting_.erase(&user);
  Start(user);
}

void ComputeSlot::Start(User& user) {
  taken_ = true;
  began_ = threading_.Now();
  served_ = user.served_;
}

void ComputeSlot::End(User& user) {
  absl::MutexLock lock(&mutex_);
  taken_ = false;
  user.served_ += (threading_.Now() - began_) / user.weight_;
  if (!waiting_.empty()) (*waiting_.begin())->called_->Signal();
}

}  // namespace attendant
