// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/limits/limits.h"
#include "server/requests/call_state.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/answer_queue.h"
#include "server/rpc/call/calls.h"

namespace attendant {

// A bidirectional call on which every request gets one answer. With a Finisher, answers go out as
// they are ready: clients tell them apart by their ids, and a failed request has an answer too.
// Without, they go in the order of the requests, and the first request that fails ends the call
// with its status. The next request is read once the size of every coming answer is known and
// StreamLimits are not reached: so a stream exceeds them by one request at most. The call ends when
// all requests read are answered and the client is done, has gone, or Close was called, or its API
// key did not count any more at a message, or a failure ends it; it is cancelled when an answer
// does not fit in the reserve for errors. Open exchanges, and it until OnDone, own it. Thread-safe.
template <typename Answer>
class AnswerStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, Answer>,
                           public std::enable_shared_from_this<AnswerStream<Answer>> {
 public:
  using Exchange = attendant::Exchange<Answer>;
  using Done = absl::AnyInvocable<void(const absl::Status&)>;
  // Starts a request, which fills the answer's response and calls `done` once, perhaps inside.
  using Handler = std::function<void(Exchange& exchange, Done done)>;
  // Completes an answer: its id, and the error in place of the response. Null: none.
  using Finisher = void (*)(const std::string& id, const absl::Status& status, Answer& answer);

  // The stream is one of `streams` until gRPC lets go of it.
  static AnswerStream* Start(OpenCalls<AnswerStream>& streams, const StreamLimits& limits,
                             MemoryBudgets& budgets, const IncomingCall& call, Handler handler,
                             Finisher finisher = nullptr) {
    const std::shared_ptr<AnswerStream> stream(
        new AnswerStream(streams, limits, budgets, call, std::move(handler), finisher));
    stream->self_ = stream;
    {
      absl::MutexLock lock(&stream->mutex_);
      stream->Advance();
    }
    streams.Add(stream.get());
    return stream.get();
  }

  // Reads no more; the stream ends with UNAVAILABLE once all is answered.
  void Close() {
    absl::MutexLock lock(&mutex_);
    if (closing_.ok()) closing_ = absl::UnavailableError("the server is draining");
    Advance();
  }

  bool CancelIfSlow(WriteClock::time_point since) {
    absl::MutexLock lock(&mutex_);
    if (!writing_since_.has_value() || *writing_since_ >= since) return false;
    writing_since_ = WriteClock::time_point::max();
    call_.info->connection.Count({.refused = 1});
    call_.context.TryCancel();
    return true;
  }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override {
    streams_.Remove(this);
    self_.reset();
  }

 private:
  using ExchangePtr = typename AnswerQueue<Answer>::Pointer;

  AnswerStream(OpenCalls<AnswerStream>& streams, const StreamLimits& limits, MemoryBudgets& budgets,
               const IncomingCall& call, Handler handler, Finisher finisher)
      : streams_(streams),
        limits_(limits),
        call_(call),
        memory_(budgets.ForConnection(call.info->connection.peer())),
        handler_(std::move(handler)),
        finisher_(finisher),
        exchanges_(finisher == nullptr) {}

  void Admitted(Exchange& exchange, int64_t response_bytes);
  void Answered(ExchangePtr exchange, const absl::Status& status);
  // The call goes on to write what is ready, and ends.
  bool ended() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return cancelled_ || !exchanges_.failure().ok();
  }
  // Starts all that the state now allows: a read, a write, the end.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return reading_ == nullptr && undecided_ == 0 && !half_closed_ && !ended() && closing_.ok() &&
           exchanges_.requests() < limits_.max_requests && exchanges_.bytes() < limits_.max_bytes;
  }

  OpenCalls<AnswerStream>& streams_;
  const StreamLimits limits_;
  const IncomingCall call_;
  const std::shared_ptr<ConnectionBudgets> memory_;
  const Handler handler_;
  const Finisher finisher_;
  std::shared_ptr<AnswerStream> self_;  // until OnDone

  // Held while gRPC operations are started: gRPC runs no reaction inside the call that starts one.
  absl::Mutex mutex_;
  ExchangePtr reading_ ABSL_GUARDED_BY(mutex_);  // null: no read is under way
  AnswerQueue<Answer> exchanges_ ABSL_GUARDED_BY(mutex_);
  std::optional<WriteClock::time_point> writing_since_ ABSL_GUARDED_BY(mutex_);  // the front
  int64_t undecided_ ABSL_GUARDED_BY(mutex_) = 0;  // requests that are not admitted yet
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status closing_ ABSL_GUARDED_BY(mutex_);  // not OK: reads no more, and ends so
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;  // an answer was written
};

template <typename Answer>
void AnswerStream<Answer>::OnReadDone(bool ok) {
  const absl::Status key = ok ? call_.gate.Recheck(*call_.info) : absl::OkStatus();
  const bool takes = ok && key.ok();
  ExchangePtr exchange;
  {
    absl::MutexLock lock(&mutex_);
    exchange = std::exchange(reading_, nullptr);
    if (finished_) return;
    half_closed_ = !ok;
    if (!key.ok()) closing_ = key;
    if (takes) {
      exchange->bytes = static_cast<int64_t>(exchange->request.Length());
      // Called before the answer, while the exchange and this stream are held for it.
      exchange->state = std::make_shared<CallState>(
          call_.info, memory_,
          [this, item = exchange.get()](int64_t bytes) { Admitted(*item, bytes); });
      ++undecided_;
      exchanges_.Add(exchange);
      if (ended()) exchange->state->Cancel();  // of a read that was under way
    }
    Advance();
  }
  if (!takes) return;
  Exchange& item = *exchange;
  handler_(item, [self = this->shared_from_this(),
                  exchange = std::move(exchange)](const absl::Status& status) mutable {
    self->Answered(std::move(exchange), status);
  });
}

template <typename Answer>
void AnswerStream<Answer>::Admitted(Exchange& exchange, int64_t response_bytes) {
  absl::MutexLock lock(&mutex_);
  exchange.admitted = true;
  exchanges_.Grow(exchange, response_bytes);
  --undecided_;
  Advance();
}

template <typename Answer>
void AnswerStream<Answer>::Answered(ExchangePtr exchange, const absl::Status& status) {
  if (finisher_ != nullptr) {
    finisher_(exchange->state->client_id(), status, exchange->answer);
  } else {
    exchange->failure = status;
  }
  exchange->state->ReleaseRequest();
  const auto answer_bytes = static_cast<int64_t>(exchange->answer.ByteSizeLong()) + kAnswerBytes;
  // Not even the reserve for errors has room: this client, or all together, leave too much unread.
  const bool room = exchange->state->AcquireAnswered(answer_bytes).ok();
  std::vector<std::shared_ptr<CallState>> in_vain;
  {
    absl::MutexLock lock(&mutex_);
    if (!room && !finished_) call_.context.TryCancel();
    exchanges_.Grow(*exchange, answer_bytes - exchange->bytes);
    if (!std::exchange(exchange->admitted, true)) --undecided_;
    const bool was_ended = ended();
    exchanges_.Answered(std::move(exchange));
    if (ended() && !was_ended) in_vain = exchanges_.Unanswered();
    Advance();
  }
  for (const std::shared_ptr<CallState>& state : in_vain) state->Cancel();
}

template <typename Answer>
void AnswerStream<Answer>::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_since_.reset();
  exchanges_.Pop();
  if (!ok) cancelled_ = true;
  Advance();
}

template <typename Answer>
void AnswerStream<Answer>::OnCancel() {
  std::vector<std::shared_ptr<CallState>> states;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    states = exchanges_.Unanswered();
    Advance();
  }
  for (const std::shared_ptr<CallState>& state : states) state->Cancel();
}

template <typename Answer>
void AnswerStream<Answer>::Advance() {
  if (finished_) return;
  if (cancelled_ && !writing_since_.has_value()) exchanges_.DropReady();
  if (!writing_since_.has_value() && exchanges_.ready()) {
    writing_since_ = WriteClock::now();
    if (!std::exchange(begun_, true)) AddCallMetadata(*call_.info, true, call_.context);
    this->StartWrite(&exchanges_.front());
  }
  if (MayRead()) {
    reading_ = std::make_shared<Exchange>();
    this->StartRead(&reading_->request);
  }
  if (writing_since_.has_value() || !exchanges_.empty()) return;
  if (!half_closed_ && !ended() && closing_.ok()) return;
  finished_ = true;
  if (cancelled_) return this->Finish(grpc::Status::CANCELLED);
  absl::Status end = exchanges_.failure();
  if (end.ok() && !half_closed_) end = closing_;
  this->Finish(EndOf(end, *call_.info, call_.context, begun_));
}

}  // namespace attendant
