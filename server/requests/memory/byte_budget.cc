// SPDX-License-Identifier: Apache-2.0
#include "server/requests/memory/byte_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kernels/core/status_macros.h"
#include "server/retry/retry_hint.h"

namespace attendant {

absl::StatusOr<ByteBudget::Share> ByteBudget::Acquire(int64_t bytes, int64_t held, Use use) {
  ATTENDANT_RETURN_IF_ERROR(Take(bytes, held, use));
  if (options_.whole != nullptr) {
    if (absl::Status full = options_.whole->Take(bytes, held, use); !full.ok()) {
      absl::MutexLock lock(&mutex_);
      taken_ -= bytes;
      return full;
    }
  }
  return Share(*this, bytes);
}

absl::Status ByteBudget::Take(int64_t bytes, int64_t held, Use use) {
  // Other clients give memory back as they read their answers; their pace is unknown.
  constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);
  constexpr int64_t kLeastReserve = 64 << 10;
  const int64_t reserve = std::max(kLeastReserve, options_.limit / 16);
  const int64_t limit = options_.limit + (use == Use::kError ? reserve : 0);
  int64_t taken = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (bytes <= limit - taken_) {
      taken_ += bytes;
      return absl::OkStatus();
    }
    taken = taken_;
  }
  if (options_.on_refused) options_.on_refused();
  if (bytes > limit - held) {
    return absl::InvalidArgumentError(absl::StrCat(options_.what, ": this one takes ", held + bytes,
                                                   " bytes, the limit is ", options_.limit, " (",
                                                   options_.flag, ")"));
  }
  absl::Status full = absl::ResourceExhaustedError(
      absl::StrCat(options_.what, " hold ", taken, " bytes and this one takes ", bytes,
                   ", the limit is ", options_.limit, " (", options_.flag, "): try again later"));
  SetRetryAfter(full, kRetryAfter);
  return full;
}

void ByteBudget::Release(int64_t bytes) {
  if (options_.whole != nullptr) options_.whole->Release(bytes);
  absl::MutexLock lock(&mutex_);
  taken_ -= bytes;
}

}  // namespace attendant
