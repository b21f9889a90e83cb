// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace attendant {

// While this lives, the process may start so many threads more: the next one fails with EAGAIN, as
// where their number or their memory is limited. A program that links failing_threads.cc has
// pthread_create replaced for everything in the process. One at a time.
class FailingThreads {
 public:
  explicit FailingThreads(int allowed);
  ~FailingThreads();
  FailingThreads(const FailingThreads&) = delete;
  FailingThreads& operator=(const FailingThreads&) = delete;
};

}  // namespace attendant
