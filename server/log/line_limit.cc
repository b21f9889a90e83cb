// SPDX-License-Identifier: Apache-2.0
#include "server/log/line_limit.h"

#include <utility>

namespace attendant {

std::optional<int64_t> LineLimit::Admit(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (now >= end_) {
    end_ = now + window_;
    written_ = 0;
  }
  if (written_ == lines_) {
    ++left_out_;
    return std::nullopt;
  }
  ++written_;
  return std::exchange(left_out_, 0);
}

}  // namespace attendant
