// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/access/call_gate.h"
#include "server/requests/memory/client_waits.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/retry/retry_hint.h"
#include "server/threads/steady_time.h"

// The calls of every gRPC service. Streams are in answer_stream.h.
namespace attendant {

// Converts a status, with the same code. The message is cut to 1024 bytes, to fit into a gRPC
// trailer.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Sends a status's RetryAfter as grpc-retry-pushback-ms, which gRPC's own retry policy honours.
// REQUIRES: the call's Finish has not been called.
void AddRetryHint(const absl::Status& status, grpc::CallbackServerContext& context);

// The response in an answer on a stream of attendant.v1.
template <typename Answer>
auto& ResponseOf(Answer& answer) {
  return *answer.mutable_response();
}

// Completes an answer on a stream of attendant.v1: the request's id, and the error in place of the
// response.
template <typename Answer>
void FinishStreamAnswer(const std::string& id, const absl::Status& status, Answer& answer) {
  answer.set_id(id);
  if (status.ok()) return;
  const grpc::Status error = ToGrpcStatus(status);
  answer.mutable_error()->set_code(error.error_code());
  answer.mutable_error()->set_message(error.error_message());
  if (const std::optional<absl::Duration> delay = RetryAfter(status)) {
    answer.mutable_error()->set_retry_after_ms(absl::ToInt64Milliseconds(*delay));
  }
}

// A call that may go on: its gate let it in.
struct IncomingCall {
  grpc::CallbackServerContext& context;
  std::shared_ptr<const CallInfo> info;
  CallGate& gate;
};

// Sends the call's request id, and traceparent and tracestate of the server's span: as initial
// metadata where `answers`, and as trailing metadata of an error that comes alone, for which gRPC's
// own retry policy would take initial metadata for the beginning of an answer. Called once, before
// the first message or Finish.
void AddCallMetadata(const CallInfo& call, bool answers, grpc::CallbackServerContext& context);

// The status to Finish with, once its metadata is added: AddRetryHint, and AddCallMetadata unless
// the answer has `begun`.
grpc::Status EndOf(const absl::Status& status, const CallInfo& call,
                   grpc::CallbackServerContext& context, bool begun = false);

// Takes a call through the gate. AddCallMetadata is done where it is refused. RESOURCE_EXHAUSTED:
// its client has opened more calls than HTTP/2 allows; the call is cancelled, which frees it even
// when the client takes no answers.
CallGate::Entry EnterGate(CallGate& gate, const CallMethod& method,
                          grpc::CallbackServerContext& context);

// Like EnterGate, for a call that may stay open without traffic. The entry's call holds the memory
// of a stream. RESOURCE_EXHAUSTED: there is none left; counted and logged like other refusals.
CallGate::Entry EnterStream(CallGate& gate, MemoryBudgets& budgets, const CallMethod& method,
                            grpc::CallbackServerContext& context);

// The accounting of a gRPC call that waits for its client: its memory, and the way to end it early
// (ClientWaits::Wait). `memory` and `context` must outlive the result.
ClientWaits::Wait MakeWait(ConnectionBudgets& memory, grpc::CallbackServerContext& context);

// The status, logged, of a call that ends before it has a whole message: `waited` where that is an
// error, CANCELLED or DEADLINE_EXCEEDED where its client has gone, else INVALID_ARGUMENT, counted
// as malformed.
absl::Status EndUnheard(const IncomingCall& call, const absl::Status& waited = absl::OkStatus());

// The call's deadline, of the steady clock; InfiniteFuture without one.
absl::Time Deadline(const grpc::CallbackServerContext& context);

// Measures how long writes wait: no jump of the wall clock ends a call.
using WriteClock = std::chrono::steady_clock;

// The calls of one kind that gRPC has not let go of. Before the server stops, it closes them and
// waits until their last answers are written. Thread-safe.
template <typename Call>
class OpenCalls {
 public:
  void Add(Call* call) {
    absl::MutexLock lock(&mutex_);
    if (closing_) {
      call->Close();
    } else {
      calls_.insert(call);
    }
  }
  void Remove(Call* call) {
    absl::MutexLock lock(&mutex_);
    calls_.erase(call);
    if (calls_.empty()) none_.SignalAll();
  }
  // Closes every call, and from now on new ones at once.
  void CloseAll() {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    for (Call* call : calls_) call->Close();
  }
  // Waits until the calls that CloseAll found are gone, at most until `deadline`, a steady time.
  void AwaitClosed(absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    while (!calls_.empty() && SteadyNow() < deadline) none_.WaitUntil(mutex_, deadline);
  }
  // Cancels the calls that have waited since before `since` for their client to take an answer.
  // Returns how many.
  int CancelSlow(WriteClock::time_point since) {
    absl::MutexLock lock(&mutex_);
    int cancelled = 0;
    for (Call* call : calls_) cancelled += call->CancelIfSlow(since) ? 1 : 0;
    return cancelled;
  }

 private:
  absl::Mutex mutex_;  // taken before a call's own
  SteadyCondVar none_;
  absl::flat_hash_set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

// The open calls of one method, whatever their kinds, as OpenCalls. Thread-safe.
class OpenMethod {
 public:
  virtual ~OpenMethod() = default;
  virtual void CloseAll() = 0;
  virtual void AwaitClosed(absl::Time deadline) = 0;
  virtual int CancelSlow(WriteClock::time_point since) = 0;
};

// Of a method with one kind of calls.
template <typename Call>
class OpenMethodOf final : public OpenMethod {
 public:
  void CloseAll() override { calls.CloseAll(); }
  void AwaitClosed(absl::Time deadline) override { calls.AwaitClosed(deadline); }
  int CancelSlow(WriteClock::time_point since) override { return calls.CancelSlow(since); }

  OpenCalls<Call> calls;
};

}  // namespace attendant
