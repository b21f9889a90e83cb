// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace attendant {

// The answer to a job that the end of the server refuses or interrupts: UNAVAILABLE.
absl::Status StoppingError();

// Work of the loading thread on one model.
struct LoadJob {
  enum class Kind {
    kLoad,
    kUnload,
    kLoadIdle,  // a load of the versions that are idle, for requests
    kRetry      // a load of those of them that could not be loaded again, without requests
  };
  Kind kind = Kind::kLoad;
  std::string name;  // of the model

  friend bool operator==(const LoadJob& a, const LoadJob& b) = default;
};

// The jobs that wait for the loading thread, in the order in which they came, the job that runs,
// and the callers that wait for the end of each. Knows no models and reads no clock. Makes no call:
// it returns the calls that are due, so that its owner makes them without a lock.
// Thread-compatible.
class LoadQueue {
 public:
  // Called once with how a job ended.
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  static constexpr size_t kMaxJobs = 4096;  // that wait

  // Adds a job. It joins the last one that waits for its model, if that is of the same kind. Takes
  // `done` when it returns OK. RESOURCE_EXHAUSTED: kMaxJobs wait. UNAVAILABLE: Close was called.
  absl::Status Add(LoadJob job, Done& done);
  // Like Add, for a job of the server's start: no caller waits, and kMaxJobs does not bound it.
  void AddAtStart(LoadJob job);

  // Takes the first job out: it runs from now on. Empty: none waits. REQUIRES: End was called for
  // the job before.
  std::optional<LoadJob> Begin();
  // The callers of the job that runs. Empty after Close, which has returned them.
  std::vector<Done> End();

  // Takes such jobs out, whose work another job has done, and returns their callers.
  std::vector<Done> Remove(const LoadJob& job);

  // Refuses jobs from now on. Takes out those that wait, and returns their callers behind the
  // callers of the job that runs.
  std::vector<Done> Close();

  bool empty() const { return waiting_.empty(); }  // no job waits
  bool closed() const { return closed_; }

 private:
  struct Waiting {
    LoadJob job;
    std::vector<Done> done;
  };

  Waiting* FindEqual(const LoadJob& job);  // that a new job joins, or null

  std::deque<Waiting> waiting_;
  std::vector<Done> running_;  // the callers of the job that runs
  bool closed_ = false;
};

}  // namespace attendant
