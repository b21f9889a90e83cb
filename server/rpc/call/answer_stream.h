// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/limits/limits.h"
#include "server/requests/call_state.h"
#include "server/requests/memory_budgets.h"
#include "server/rpc/call/calls.h"

namespace attendant {

// A bidirectional call on which every request gets one answer, as soon as that is ready. The next
// request is read once the size of every coming answer is known and StreamLimits are not reached:
// so a stream exceeds them by one request at most. The call ends when all requests read are
// answered and the client is done, has gone, or Close was called; it is cancelled when an answer
// does not fit in the reserve for errors. Open exchanges, and it until OnDone, own it. Thread-safe.
template <typename Answer>
class AnswerStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, Answer>,
                           public std::enable_shared_from_this<AnswerStream<Answer>> {
 public:
  struct Exchange {
    grpc::ByteBuffer request;  // the handler takes it
    Answer answer;
    std::shared_ptr<CallState> state;
    int64_t bytes = 0;      // of the request and of the coming answer, then of the answer
    bool admitted = false;  // the size of its answer is known, or it is answered
  };
  using Done = absl::AnyInvocable<void(const absl::Status&)>;
  // Starts a request, which fills the answer's response and calls `done` once, perhaps inside.
  using Handler = std::function<void(Exchange& exchange, Done done)>;
  // Completes an answer: its id, and the error in place of the response.
  using Finisher = void (*)(const std::string& id, const absl::Status& status, Answer& answer);

  // The stream is one of `streams` until gRPC lets go of it.
  static AnswerStream* Start(OpenCalls<AnswerStream>& streams, const StreamLimits& limits,
                             MemoryBudgets& budgets, const IncomingCall& call, Handler handler,
                             Finisher finisher) {
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
    closing_ = true;
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
  using ExchangePtr = std::shared_ptr<Exchange>;

  AnswerStream(OpenCalls<AnswerStream>& streams, const StreamLimits& limits, MemoryBudgets& budgets,
               const IncomingCall& call, Handler handler, Finisher finisher)
      : streams_(streams),
        limits_(limits),
        call_(call),
        memory_(budgets.ForConnection(call.info->connection.peer())),
        handler_(std::move(handler)),
        finisher_(finisher) {}

  void Admitted(Exchange& exchange, int64_t response_bytes);
  void Answered(ExchangePtr exchange);

  // Starts all that the state now allows: a read, a write, the end.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MaybeFinish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto requests = static_cast<int64_t>(unanswered_.size() + answered_.size());
    return reading_ == nullptr && undecided_ == 0 && !half_closed_ && !cancelled_ && !closing_ &&
           requests < limits_.max_requests && bytes_ < limits_.max_bytes;
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
  absl::flat_hash_set<ExchangePtr> unanswered_ ABSL_GUARDED_BY(mutex_);
  std::deque<ExchangePtr> answered_ ABSL_GUARDED_BY(mutex_);
  std::optional<WriteClock::time_point> writing_since_ ABSL_GUARDED_BY(mutex_);  // the front
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;      // of unanswered_ and answered_
  int64_t undecided_ ABSL_GUARDED_BY(mutex_) = 0;  // of unanswered_, not yet admitted
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

template <typename Answer>
void AnswerStream<Answer>::OnReadDone(bool ok) {
  ExchangePtr exchange;
  {
    absl::MutexLock lock(&mutex_);
    exchange = std::exchange(reading_, nullptr);
    if (finished_) return;
    half_closed_ = !ok;
    if (ok) {
      exchange->bytes = static_cast<int64_t>(exchange->request.Length());
      // Called before the answer, while the exchange and this stream are held for it.
      exchange->state = std::make_shared<CallState>(
          call_.info, memory_,
          [this, item = exchange.get()](int64_t bytes) { Admitted(*item, bytes); });
      bytes_ += exchange->bytes;
      ++undecided_;
      unanswered_.insert(exchange);
    }
    Advance();
  }
  if (!ok) return;
  Exchange& item = *exchange;
  handler_(item, [self = this->shared_from_this(),
                  exchange = std::move(exchange)](const absl::Status& status) mutable {
    self->finisher_(exchange->state->client_id(), status, exchange->answer);
    self->Answered(std::move(exchange));
  });
}

template <typename Answer>
void AnswerStream<Answer>::Admitted(Exchange& exchange, int64_t response_bytes) {
  absl::MutexLock lock(&mutex_);
  exchange.admitted = true;
  exchange.bytes += response_bytes;
  bytes_ += response_bytes;
  --undecided_;
  Advance();
}

template <typename Answer>
void AnswerStream<Answer>::Answered(ExchangePtr exchange) {
  exchange->state->ReleaseRequest();
  const auto answer_bytes = static_cast<int64_t>(exchange->answer.ByteSizeLong()) + kAnswerBytes;
  // Not even the reserve for errors has room: this client, or all together, leave too much unread.
  const bool room = exchange->state->AcquireAnswered(answer_bytes).ok();
  absl::MutexLock lock(&mutex_);
  if (!room && !finished_) call_.context.TryCancel();
  bytes_ += answer_bytes - std::exchange(exchange->bytes, answer_bytes);
  if (!std::exchange(exchange->admitted, true)) --undecided_;
  unanswered_.erase(exchange);
  answered_.push_back(std::move(exchange));
  Advance();
}

template <typename Answer>
void AnswerStream<Answer>::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_since_.reset();
  bytes_ -= answered_.front()->bytes;
  answered_.pop_front();
  if (!ok) cancelled_ = true;
  Advance();
}

template <typename Answer>
void AnswerStream<Answer>::OnCancel() {
  std::vector<std::shared_ptr<CallState>> states;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    for (const ExchangePtr& exchange : unanswered_) {
      states.push_back(exchange->state);
    }
    Advance();
  }
  for (const std::shared_ptr<CallState>& state : states) state->Cancel();
}

template <typename Answer>
void AnswerStream<Answer>::Advance() {
  if (finished_) return;
  if (cancelled_ && !writing_since_.has_value()) {
    for (const ExchangePtr& exchange : answered_) bytes_ -= exchange->bytes;
    answered_.clear();  // their reader is gone
  }
  if (!writing_since_.has_value() && !answered_.empty()) {
    writing_since_ = WriteClock::now();
    this->StartWrite(&answered_.front()->answer);
  }
  if (MayRead()) {
    reading_ = std::make_shared<Exchange>();
    this->StartRead(&reading_->request);
  }
  MaybeFinish();
}

template <typename Answer>
void AnswerStream<Answer>::MaybeFinish() {
  const bool answered = !writing_since_.has_value() && unanswered_.empty() && answered_.empty();
  if (!answered || !(half_closed_ || cancelled_ || closing_)) return;
  finished_ = true;
  const grpc::Status draining(grpc::StatusCode::UNAVAILABLE, "the server is draining");
  this->Finish(cancelled_ ? grpc::Status::CANCELLED : half_closed_ ? grpc::Status::OK : draining);
}

}  // namespace attendant
