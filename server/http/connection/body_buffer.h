// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/requests/memory/byte_budget.h"
#include "server/requests/memory/memory_budgets.h"

namespace attendant {

// The body of a request while it arrives. Its memory is accounted for before it is taken, and is at
// most twice of what has come, or 16 KiB: an announced length alone takes nothing.
class BodyBuffer {
 public:
  // Makes room for more bytes. `length`: of the whole body, where the client has told it;
  // `max_bytes`: that it may have. Errors as ByteBudget::Acquire.
  absl::Status MakeRoom(ConnectionBudgets& budgets, std::optional<uint64_t> length,
                        int64_t max_bytes);

  char* end() { return text_.data() + received_; }
  size_t room() const { return text_.size() - received_; }
  void Received(size_t bytes) { received_ += bytes; }
  size_t received() const { return received_; }

  struct Body {
    std::string text;
    ByteBudget::Share memory;  // of the text
  };
  // Takes what has come; the buffer is empty then.
  Body Take();

 private:
  std::string text_;
  size_t received_ = 0;
  ByteBudget::Share memory_;
};

}  // namespace attendant
