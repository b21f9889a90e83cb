// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/body_buffer.h"

#include <algorithm>
#include <utility>

#include "kernels/core/status_macros.h"

namespace attendant {

absl::Status BodyBuffer::MakeRoom(ConnectionBudgets& budgets, std::optional<uint64_t> length,
                                  int64_t max_bytes) {
  constexpr size_t kLeast = 16384;
  if (room() > 0) return absl::OkStatus();
  const size_t most = std::max(static_cast<size_t>(max_bytes), text_.size()) + kLeast;
  size_t bytes = std::min(std::max(kLeast, 2 * text_.size()), most);
  if (length && *length > received_) bytes = std::min<size_t>(bytes, *length);
  ATTENDANT_ASSIGN_OR_RETURN(ByteBudget::Share share,
                             budgets.AcquireRequest(static_cast<int64_t>(bytes - text_.size()),
                                                    static_cast<int64_t>(text_.size())));
  memory_.Add(std::move(share));
  text_.resize(bytes);
  return absl::OkStatus();
}

BodyBuffer::Body BodyBuffer::Take() {
  text_.resize(std::exchange(received_, 0));
  text_.shrink_to_fit();
  memory_.ShrinkTo(static_cast<int64_t>(text_.size()));
  return {std::exchange(text_, std::string()), std::exchange(memory_, ByteBudget::Share())};
}

}  // namespace attendant
