// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/batching/batcher.h"

namespace attendant {

// A request that was submitted, so that it can be cancelled. Copyable, may outlive the request, but
// not the batcher.
struct Ticket {
  Batcher* batcher = nullptr;  // null: nothing to cancel
  RequestId id = 0;

  void Cancel() const {
    if (batcher != nullptr) batcher->Cancel(id);
  }
};

}  // namespace attendant
