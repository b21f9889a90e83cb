// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/access/access_record.h"
#include "server/access/log_file.h"
#include "server/metrics/server_metrics.h"
#include "server/threads/steady_time.h"
#include "server/tracing/id_source.h"

namespace attendant {

// Writes the access log on a thread of its own. attendant_access_log_lines_total counts the lines
// that came to the file and those that did not. Thread-safe.
class AccessLog {
 public:
  struct Options {
    double sample = 1;               // share of the requests without an error, from 0 to 1
    int64_t max_lines_per_s = 1000;  // of all lines
    size_t max_queued = 8192;        // lines that wait for the thread; about 8 MiB
    std::function<void()> on_failure = [] {};  // lines do not come to the file; once a minute
  };

  // `metrics` must outlive the log.
  AccessLog(LogFile file, const Options& options, ServerMetrics& metrics);
  // Writes the lines that wait, but for no reader.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  // True if a request that ends with `code` gets a line: every error does, and a sample of the
  // successes.
  bool Wants(absl::StatusCode code);
  // Never waits for the file.
  void Add(AccessRecord record);

  // Waits until the lines so far are written, at most for `limit`.
  void Flush(absl::Duration limit);

 private:
  bool WithinRate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop();
  void Write(std::deque<AccessRecord>& records);
  void TellOfFailure();

  const Options options_;
  ServerMetrics& metrics_;
  IdSource dice_;
  std::atomic<bool> ending_{false};

  LogFile file_;                            // the thread's
  absl::Time renewed_;                      // likewise
  absl::Time told_ = absl::InfinitePast();  // of a failure; likewise

  absl::Mutex mutex_;
  SteadyCondVar written_;
  std::deque<AccessRecord> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t second_ ABSL_GUARDED_BY(mutex_) = 0;  // lines_ counts the lines of this one
  int64_t lines_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attendant
