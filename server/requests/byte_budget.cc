// SPDX-License-Identifier: Apache-2.0
#include "server/requests/byte_budget.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/batching/retry_hint.h"

namespace attendant {

absl::StatusOr<ByteBudget::Share> ByteBudget::Acquire(int64_t bytes) {
  // Other clients give memory back as they read their answers; their pace is unknown.
  constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);
  int64_t taken = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (bytes <= limit_ - taken_) {
      taken_ += bytes;
      return Share(*this, bytes);
    }
    taken = taken_;
  }
  absl::Status full = absl::ResourceExhaustedError(
      absl::StrCat(what_, " hold ", taken, " bytes and this one takes ", bytes, ", the limit is ",
                   limit_, " (", flag_, "): try again later"));
  SetRetryAfter(full, kRetryAfter);
  return full;
}

void ByteBudget::Release(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  taken_ -= bytes;
}

}  // namespace attendant
