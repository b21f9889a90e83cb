// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <memory>
#include <unordered_set>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/types.h"

namespace attendant::client {

// A channel with a TCP connection of its own, made at the first call. Answers may have any size.
// INVALID_ARGUMENT for files that cannot be read, a trace's id that is not one, a timeout that is
// not above 0, a number of attempts outside 1 to 5, and a target that is empty, a URL or has a port
// beyond 65535 or below 0. gRPC then runs until the process ends.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ConnectOptions& options);

// Converts a status, with the same code. If the server's gRPC refused the request for its size, the
// message names the flag.
absl::Status ToAbslStatus(const grpc::Status& status);

// Sets the deadline of a call that starts now. An infinite timeout sets none.
void SetTimeout(absl::Duration timeout, grpc::ClientContext& context);

// The asynchronous calls that are running. Thread-safe.
class OutstandingCalls {
 public:
  ~OutstandingCalls() { CancelAndWait(); }

  // Before the call starts. After CancelAndWait has begun, the call is cancelled at once: a
  // callback that starts the next call would keep CancelAndWait waiting.
  void Add(grpc::ClientContext* context) ABSL_LOCKS_EXCLUDED(mutex_);
  // The last step of a call, with a `destroy` that destroys the context: then CancelAndWait may
  // return. A context holds its channel. Were it the last to do so, on gRPC's own thread, gRPC 1.51
  // would destroy the channel there, have the thread join itself, and then read its freed queue.
  void End(grpc::ClientContext* context, absl::FunctionRef<void()> destroy)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelAndWait() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void CancelAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // CancelAndWait has begun
  std::unordered_set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);
  int64_t ending_ ABSL_GUARDED_BY(mutex_) = 0;  // whose contexts are being destroyed
};

}  // namespace attendant::client
