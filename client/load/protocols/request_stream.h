// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/load/caller.h"
#include "client/load/clock.h"
#include "client/load/protocols/completion_thread.h"
#include "client/load/protocols/grpc_load.h"

namespace attendant::client {

// A bidirectional call with many requests outstanding, and the next one when it breaks: its
// requests then end with its status (UNAVAILABLE when the server just ended it), and the next
// request opens the stream again. A request without an answer in time ends with DEADLINE_EXCEEDED;
// the others stay. An error without an id is that of the oldest request. An answer that nobody can
// have asked for breaks the stream with INTERNAL. Thread-safe.
class RequestStream {
 public:
  // `load`, `thread` and `clock` must outlive the stream; `thread` calls Tend when it is idle.
  RequestStream(const GrpcLoad& load, std::shared_ptr<grpc::Channel> channel,
                absl::Duration timeout, CompletionThread& thread, const LoadClock& clock);
  // REQUIRES: Close was called, and the thread is joined.
  ~RequestStream();

  // `done` runs once, on the thread. What the thread itself sends is written by the next Tend: so
  // requests that follow answers which came together share a packet.
  void Send(const GrpcRequest& request, Caller::Done done) ABSL_LOCKS_EXCLUDED(mutex_);
  void Tend() ABSL_LOCKS_EXCLUDED(mutex_);

  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancels the call and returns when it has ended. Send no more.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Call;
  struct Outstanding {
    const GrpcRequest* request;
    Caller::Done done;        // null: its time was over
    absl::Duration deadline;  // of the clock
  };
  using Requests = std::map<int64_t, Outstanding>;  // by id; the oldest first

  // The steps after an operation of the call. Only the thread runs them.
  void OnStarted(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWritten(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnRead(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnded(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);

  void Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the next request, unless one is being written.
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The request that an answer with this id belongs to; false: none.
  bool Take(const std::string& id, Outstanding& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the call. `fault`: of the answers; empty: the call's own status says why.
  void Break(const std::string& fault) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Once no operation is under way.
  void EndCall() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndLate(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  const GrpcLoad& load_;
  grpc::GenericStub stub_;
  const absl::Duration timeout_;
  CompletionThread& thread_;
  const LoadClock& clock_;
  absl::Duration next_look_;  // for late requests; of the thread

  absl::Mutex mutex_;
  std::unique_ptr<Call> call_ ABSL_GUARDED_BY(mutex_);  // null: there is none
  int64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  Requests outstanding_ ABSL_GUARDED_BY(mutex_);
  // Not written yet; requests of outstanding_.
  std::deque<std::pair<int64_t, const GrpcRequest*>> unwritten_ ABSL_GUARDED_BY(mutex_);
  Requests lost_ ABSL_GUARDED_BY(mutex_);  // with a call that is ending
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant::client
