// SPDX-License-Identifier: Apache-2.0
// The reactions of AnswerStream. Included by answer_stream.h only.
#pragma once

#include "server/rpc/call/answer_stream.h"

namespace attendant {

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
      exchange->cancellation = std::make_shared<Cancellation>(
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
  handler_(item, [self = this->shared_from_this(), exchange = std::move(exchange)]() mutable {
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
  exchange->cancellation->ReleaseRequest();
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
  std::vector<std::shared_ptr<Cancellation>> cancellations;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    for (const ExchangePtr& exchange : unanswered_) {
      cancellations.push_back(exchange->cancellation);
    }
    Advance();
  }
  for (const std::shared_ptr<Cancellation>& cancellation : cancellations) cancellation->Cancel();
}

template <typename Request, typename Answer>
void AnswerStream<Request, Answer>::Advance() {
  if (finished_) return;
  if (cancelled_ && !writing_) {
    for (const ExchangePtr& exchange : answered_) bytes_ -= exchange->bytes;
    answered_.clear();  // nobody is there to read them
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
