// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/access/call_gate.h"
#include "server/requests/call_state.h"
#include "server/requests/memory/client_waits.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/calls.h"

namespace attendant {

// A call that reads messages until it has its request, and has one answer. It begins with the
// call's head, and reads the messages itself: gRPC would keep calls without a message to itself, as
// many as a client likes to send. Owns itself until OnDone. Thread-safe.
class ReadingCall : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  // Ends a call that still reads, with UNAVAILABLE. Others end once they are answered.
  void Close() {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(reading_, false)) End(absl::UnavailableError("the server is draining"));
  }
  // Cancels a call that has waited for its client since before `since`.
  bool CancelIfSlow(WriteClock::time_point since) {
    WriteClock::time_point waiting_since = waiting_since_.load();
    if (waiting_since >= since) return false;
    // Fails if the client has done its part meanwhile.
    if (!waiting_since_.compare_exchange_strong(waiting_since, kNotWaiting)) return false;
    incoming_.info->connection.Count({.refused = 1});
    incoming_.context.TryCancel();
    return true;
  }

  void OnReadDone(bool ok) final {
    if (IsReading() && Take(ok) && ReadNext()) return;
    if (StopReading()) return StartRequest();
    // Close has ended the call. It holds the lock of OpenCalls, so the log is left to this place.
    incoming_.gate.Ended(*incoming_.info, {.code = absl::StatusCode::kUnavailable});
  }
  void OnCancel() final { state_->Cancel(); }
  void OnDone() final {
    calls_.Remove(this);
    delete this;
  }

 protected:
  // `incoming`: its context lives until OnDone.
  ReadingCall(OpenCalls<ReadingCall>& calls, MemoryBudgets& budgets, const IncomingCall& incoming)
      : calls_(calls),
        incoming_(incoming),
        state_(std::make_shared<CallState>(
            incoming.info, budgets.ForConnection(incoming.info->connection.peer()))),
        wait_(MakeWait(state_->memory(), incoming.context)) {}
  ~ReadingCall() override = default;

  // Reads the first message. The call is one of `calls` from now on, until gRPC lets go of it.
  void Begin() {
    StartRead(&message_);
    calls_.Add(this);
  }

  // Takes in message(), or without `ok` the end of the messages. True: reads the next one.
  virtual bool Take(bool ok) = 0;
  // Called once, when no more is read. It, or what it starts, ends the call.
  virtual void StartRequest() = 0;

  // From now on the call waits for its client: to send the next message, or to take the answer.
  void AwaitClient() { waiting_since_ = WriteClock::now(); }
  void End(const absl::Status& status) {
    const grpc::Status end = EndOf(status, *incoming_.info, incoming_.context);
    AwaitClient();
    if (!state_->holds_memory()) wait_.Begin();
    Finish(end);
  }
  Done Ender() {
    return [this](const absl::Status& status) { End(status); };
  }

  const IncomingCall& incoming() const { return incoming_; }
  grpc::ByteBuffer& message() { return message_; }
  const std::shared_ptr<CallState>& state() const { return state_; }
  ClientWaits::Wait& wait() { return wait_; }

 private:
  static constexpr WriteClock::time_point kNotWaiting = WriteClock::time_point::max();

  bool IsReading() {
    absl::MutexLock lock(&mutex_);
    return reading_;
  }
  // False: Close has ended the call.
  bool ReadNext() {
    absl::MutexLock lock(&mutex_);
    if (!reading_) return false;
    AwaitClient();
    StartRead(&message_);
    return true;
  }
  bool StopReading() {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(reading_, false)) return false;
    waiting_since_ = kNotWaiting;
    return true;
  }

  OpenCalls<ReadingCall>& calls_;
  const IncomingCall incoming_;
  const std::shared_ptr<CallState> state_;
  ClientWaits::Wait wait_;  // while the call holds no memory of the state
  grpc::ByteBuffer message_;
  std::atomic<WriteClock::time_point> waiting_since_{kNotWaiting};  // for the client
  absl::Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;  // until the request starts, or Close
};

}  // namespace attendant
