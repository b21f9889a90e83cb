// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/requests/byte_budget.h"

namespace attendant {

struct MemoryLimits {
  int64_t max_pending_request_bytes = int64_t{512} << 20;
  int64_t max_pending_response_bytes = int64_t{1} << 30;
};

// What the requests of all protocols may hold together, until each is answered and its answer
// written. Must outlive the models, whose queues hold requests.
struct MemoryBudgets {
  static constexpr absl::string_view kRejected = "memory";  // beside the batcher's reasons

  explicit MemoryBudgets(const MemoryLimits& limits = {})
      : requests("requests in work", "--max_pending_request_bytes",
                 limits.max_pending_request_bytes),
        responses("answers in work or not yet read by their clients",
                  "--max_pending_response_bytes", limits.max_pending_response_bytes) {}

  ByteBudget requests;
  ByteBudget responses;
};

}  // namespace attendant
