// SPDX-License-Identifier: Apache-2.0
#include "server/threads/thread_room.h"

#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace attendant {

absl::Status CheckThreadRoom(int count) {
  absl::Notification end;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  absl::Status status;
  try {
    while (static_cast<int>(threads.size()) < count) {
      threads.emplace_back([&end] { end.WaitForNotification(); });
    }
  } catch (const std::system_error&) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("the system refuses another thread: ", threads.size(), " of ", count,
                     " started; see ulimit -u and ulimit -v, and pids.max of the cgroup"));
  }
  end.Notify();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace attendant
