// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/limits/limits.h"
#include "server/requests/call_state.h"
#include "server/rpc/call/calls.h"

namespace attendant {

// A bidirectional call on which every request gets one answer, as soon as that is ready. The next
// request is read once the size of every coming answer is known and StreamLimits are not reached:
// so a stream exceeds them by one request at most. The call ends when all requests read are
// answered and the client is done, has gone, or Close was called. Owns itself until OnDone; its
// open exchanges keep it too. Thread-safe.
template <typename Request, typename Answer>
class AnswerStream final : public grpc::ServerBidiReactor<Request, Answer>,
                           public std::enable_shared_from_this<AnswerStream<Request, Answer>> {
 public:
  struct Exchange {
    Request request;
    Answer answer;
    std::shared_ptr<CallState> state;
    int64_t bytes = 0;      // of the request and of the coming answer, then of the answer
    bool admitted = false;  // the size of its answer is known, or it is answered
  };
  using Done = absl::AnyInvocable<void(const absl::Status&)>;
  // Starts a request, which fills the answer's response and calls `done` once, perhaps inside.
  using Handler = std::function<void(Exchange& exchange, Done done)>;
  // Completes an answer: its id, and the error in place of the response.
  using Finisher = void (*)(const Request& request, const absl::Status& status, Answer& answer);

  // The stream is one of `streams` until gRPC lets go of it.
  static AnswerStream* Start(OpenCalls<AnswerStream>& streams, const StreamLimits& limits,
                             Handler handler, Finisher finisher) {
    const std::shared_ptr<AnswerStream> stream(
        new AnswerStream(streams, limits, std::move(handler), finisher));
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

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override {
    streams_.Remove(this);
    self_.reset();
  }

 private:
  using ExchangePtr = std::shared_ptr<Exchange>;

  AnswerStream(OpenCalls<AnswerStream>& streams, const StreamLimits& limits, Handler handler,
               Finisher finisher)
      : streams_(streams), limits_(limits), handler_(std::move(handler)), finisher_(finisher) {}

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
  const Handler handler_;
  const Finisher finisher_;
  std::shared_ptr<AnswerStream> self_;  // until OnDone

  // Held while gRPC operations are started: gRPC runs no reaction inside the call that starts one.
  absl::Mutex mutex_;
  ExchangePtr reading_ ABSL_GUARDED_BY(mutex_);  // null: no read is under way
  absl::flat_hash_set<ExchangePtr> unanswered_ ABSL_GUARDED_BY(mutex_);
  std::deque<ExchangePtr> answered_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;   // answered_.front()
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;      // of unanswered_ and answered_
  int64_t undecided_ ABSL_GUARDED_BY(mutex_) = 0;  // of unanswered_, not yet admitted
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

template <typename Request, typename Answer>
void AnswerStream<Request, Answer>::OnReadDone(bool ok) {
  ExchangePtr exchange;
  {
    absl::MutexLock lock(&mutex_);
    exchange = std::exchange(reading_, nullptr);
    if (finished_) return;
    if (ok) {
      exchange->bytes = static_cast<int64_t>(exchange->request.ByteSizeLong());
      // Called before the answer, while the exchange and this stream are held for it.
      exchange->state = std::make_shared<CallState>(
          [this, item = exchange.get()](int64_t bytes) { Admitted(*item, bytes); });
      bytes_ += exchange->bytes;
      ++undecided_;
      unanswered_.insert(exchange);
    } else {
      half_closed_ = true;
    }
    Advance();
  }
  if (!ok) return;
  Exchange& item = *exchange;
  handler_(item, [self = this->shared_from_this(),
                  exchange = std::move(exchange)](const absl::Status& status) mutable {
    self->finisher_(exchange->request, status, exchange->answer);
    self->Answered(std::move(exchange));
  });
}

template <typename Request, typename Answer>
void AnswerStream<Request, Answer>::Admitted(Exchange& exchange, int64_t response_bytes) {
  absl::MutexLock lock(&mutex_);
  exchange.admitted = true;
  exchange.bytes += response_bytes;
  bytes_ += response_bytes;
  --undecided_;
  Advance();
}

template <typename Request, typename Answer>
void AnswerStream<Request, Answer>::Answered(ExchangePtr exchange) {
  Request().Swap(&exchange->request);  // Clear would keep its memory
  exchange->state->ReleaseRequest();
  const auto answer_bytes = static_cast<int64_t>(exchange->answer.ByteSizeLong());
  absl::MutexLock lock(&mutex_);
  bytes_ += answer_bytes - std::exchange(exchange->bytes, answer_bytes);
  if (!std::exchange(exchange->admitted, true)) --undecided_;
  unanswered_.erase(exchange);
  answered_.push_back(std::move(exchange));
  Advance();
}

template <typename Request, typename Answer>
void AnswerStream<Request, Answer>::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  bytes_ -= answered_.front()->bytes;
  answered_.pop_front();
  if (!ok) cancelled_ = true;
  Advance();
}

template <typename Request, typename Answer>
void AnswerStream<Request, Answer>::OnCancel() {
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

template <typename Request, typename Answer>
void AnswerStream<Request, Answer>::Advance() {
  if (finished_) return;
  if (cancelled_ && !writing_) {
    for (const ExchangePtr& exchange : answered_) bytes_ -= exchange->bytes;
    answered_.clear();  // their reader is gone
  }
  if (!writing_ && !answered_.empty()) {
    writing_ = true;
    this->StartWrite(&answered_.front()->answer);
  }
  if (MayRead()) {
    reading_ = std::make_shared<Exchange>();
    this->StartRead(&reading_->request);
  }
  MaybeFinish();
}

template <typename Request, typename Answer>
void AnswerStream<Request, Answer>::MaybeFinish() {
  const bool answered = !writing_ && unanswered_.empty() && answered_.empty();
  if (!answered || !(half_closed_ || cancelled_ || closing_)) return;
  finished_ = true;
  if (cancelled_) {
    this->Finish(grpc::Status::CANCELLED);
  } else if (half_closed_) {
    this->Finish(grpc::Status::OK);
  } else {
    this->Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is draining"));
  }
}

}  // namespace attendant
