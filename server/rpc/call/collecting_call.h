// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/requests/call_state.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/unary_call.h"

namespace attendant {

// A call whose messages, one after the other, make one request with one answer. It ends when its
// API key does not count any more at one of them. Owns itself until OnDone. Thread-safe.
class CollectingCall final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  using Done = UnaryCall::Done;
  // Takes in one message, whose bytes are accounted for. False: it needs no more.
  using Add = std::function<bool(grpc::ByteBuffer& bytes)>;
  // Starts the request, for which no memory is accounted any more. `collected`: OK, or why not all
  // messages could be taken in. `done` is called once, perhaps inside.
  using Handler = std::function<void(const absl::Status& collected,
                                     std::shared_ptr<CallState> state, Done done)>;

  // The call is one of `calls` until gRPC lets go of it.
  static CollectingCall* Start(OpenCalls<CollectingCall>& calls, MemoryBudgets& budgets,
                               const IncomingCall& incoming, Add add, Handler handler) {
    auto* call = new CollectingCall(calls, budgets, incoming, std::move(add), std::move(handler));
    calls.Add(call);
    call->ReadNext();
    return call;
  }

  // Ends a call that still collects, with UNAVAILABLE. Others end once they are answered.
  void Close() { EndCollecting(absl::UnavailableError("the server is draining")); }
  // A client that sends no further message keeps the memory of those before, as one that does not
  // take its answer.
  bool CancelIfSlow(WriteClock::time_point since) {
    if (waiting_since_.load() >= since) return false;
    waiting_since_ = kNotWaiting;
    state_->call().connection.Count({.refused = 1});
    context_.TryCancel();
    return true;
  }

  void OnReadDone(bool ok) override {
    absl::Status status = IsWanted() ? gate_.Recheck(state_->call()) : absl::OkStatus();
    if (!status.ok()) return EndCollecting(status);
    if (ok) {
      status = state_->AcquireRequest(static_cast<int64_t>(bytes_.Length()));
      const bool more = status.ok() && add_(bytes_);
      bytes_.Clear();
      if (more) return ReadNext();
    }
    {
      absl::MutexLock lock(&mutex_);
      if (!std::exchange(collecting_, false)) return;  // closed
    }
    waiting_since_ = kNotWaiting;
    if (state_->cancelled()) return Finish(grpc::Status::CANCELLED);
    state_->ReleaseRequest();
    handler_(status, state_, [this](const absl::Status& end) {
      waiting_since_ = WriteClock::now();
      End(end);
    });
  }
  void OnCancel() override { state_->Cancel(); }
  void OnDone() override {
    calls_.Remove(this);
    delete this;
  }

 private:
  static constexpr WriteClock::time_point kNotWaiting = WriteClock::time_point::max();

  CollectingCall(OpenCalls<CollectingCall>& calls, MemoryBudgets& budgets,
                 const IncomingCall& incoming, Add add, Handler handler)
      : calls_(calls),
        context_(incoming.context),
        gate_(incoming.gate),
        state_(std::make_shared<CallState>(
            incoming.info, budgets.ForConnection(incoming.info->connection.peer()))),
        add_(std::move(add)),
        handler_(std::move(handler)) {}

  // Otherwise the call has ended, or its client has gone: gRPC knows it before it calls OnCancel.
  bool IsWanted() {
    absl::MutexLock lock(&mutex_);
    return collecting_ && !context_.IsCancelled();
  }
  void EndCollecting(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(collecting_, false)) End(status);
  }
  void End(const absl::Status& status) { Finish(EndOf(status, state_->call(), context_)); }

  void ReadNext() {
    absl::MutexLock lock(&mutex_);
    waiting_since_ = WriteClock::now();
    if (collecting_) StartRead(&bytes_);
  }

  OpenCalls<CollectingCall>& calls_;
  grpc::CallbackServerContext& context_;  // lives until OnDone
  CallGate& gate_;
  const std::shared_ptr<CallState> state_;
  const Add add_;
  const Handler handler_;
  grpc::ByteBuffer bytes_;                                          // of the message that is read
  std::atomic<WriteClock::time_point> waiting_since_{kNotWaiting};  // for the client
  absl::Mutex mutex_;
  bool collecting_ ABSL_GUARDED_BY(mutex_) = true;  // until the request starts, or Close
};

}  // namespace attendant
