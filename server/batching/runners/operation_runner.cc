// SPDX-License-Identifier: Apache-2.0
#include "server/batching/runners/operation_runner.h"

#include <sys/resource.h>

#include <exception>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

// On Linux this is the calling thread's alone. Nobody is refused a higher niceness.
void GiveWay(int nice) {
  if (nice > 0) setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + nice);
}

}  // namespace

OperationRunner::OperationRunner(const ThreadTeam& team, int nice)
    : nice_(nice), pool_(team, [nice] { GiveWay(nice); }) {}

void OperationRunner::OnWorkerStart() {
  GiveWay(nice_);
  pool_.PlaceCaller();
}

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
