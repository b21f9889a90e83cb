// SPDX-License-Identifier: Apache-2.0
#include "server/batching/operation_runner.h"

#include <exception>

#include "absl/strings/str_cat.h"

namespace attendant {

absl::Status OperationRunner::Run(std::span<const BatchItem> items) {
  try {
    for (const BatchItem& item : items) {
      const absl::Status status = item.request->operation().Run(pool_);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("an operation failed: ", error.what()));
  }
}

}  // namespace attendant
