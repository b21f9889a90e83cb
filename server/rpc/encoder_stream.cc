// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/encoder_stream.h"

#include <utility>
#include <vector>

#include "server/rpc/status_translation.h"

namespace attendant {

struct EncoderStream::Exchange {
  v1::EncodeRequest request;
  v1::EncodeStreamResponse answer;
  std::shared_ptr<Cancellation> cancellation;
  int64_t bytes = 0;  // of the request, then of the answer
};

std::shared_ptr<EncoderStream> EncoderStream::Start(EncodePipeline& pipeline,
                                                    const Executor& executor,
                                                    const StreamLimits& limits, absl::Time deadline,
                                                    std::function<void(EncoderStream*)> on_done) {
  std::shared_ptr<EncoderStream> stream(
      new EncoderStream(pipeline, executor, limits, deadline, std::move(on_done)));
  stream->self_ = stream;
  absl::MutexLock lock(&stream->mutex_);
  stream->Advance();
  return stream;
}

EncoderStream::EncoderStream(EncodePipeline& pipeline, const Executor& executor,
                             const StreamLimits& limits, absl::Time deadline,
                             std::function<void(EncoderStream*)> on_done)
    : pipeline_(pipeline),
      executor_(executor),
      limits_(limits),
      deadline_(deadline),
      on_done_(std::move(on_done)) {}

void EncoderStream::Close() {
  absl::MutexLock lock(&mutex_);
  closing_ = true;
  Advance();
}

void EncoderStream::OnReadDone(bool ok) {
  std::shared_ptr<Exchange> exchange;
  {
    absl::MutexLock lock(&mutex_);
    exchange = std::exchange(reading_, nullptr);
    if (finished_) return;
    if (ok) {
      exchange->bytes = static_cast<int64_t>(exchange->request.ByteSizeLong());
      exchange->cancellation = std::make_shared<Cancellation>(pipeline_);
      bytes_ += exchange->bytes;
      unanswered_.insert(exchange);
    } else {
      half_closed_ = true;
    }
    Advance();
  }
  if (ok) Run(std::move(exchange));
}

void EncoderStream::Run(std::shared_ptr<Exchange> exchange) {
  const EncoderCall call{pipeline_, executor_, Method::kEncodeStream, deadline_,
                         exchange->cancellation};
  Exchange& item = *exchange;
  RunEncoderCall(
      call, item.request, *item.answer.mutable_response(),
      [self = shared_from_this(), exchange = std::move(exchange)](
          const absl::Status& status) mutable { self->Answered(std::move(exchange), status); });
}

void EncoderStream::Answered(std::shared_ptr<Exchange> exchange, const absl::Status& status) {
  exchange->answer.set_id(exchange->request.id());
  if (!status.ok()) {
    const grpc::Status error = ToGrpcStatus(status);
    exchange->answer.mutable_error()->set_code(error.error_code());
    exchange->answer.mutable_error()->set_message(error.error_message());
  }
  exchange->request.Clear();
  const int64_t answer_bytes = static_cast<int64_t>(exchange->answer.ByteSizeLong());
  absl::MutexLock lock(&mutex_);
  bytes_ += answer_bytes - std::exchange(exchange->bytes, answer_bytes);
  unanswered_.erase(exchange);
  answered_.push_back(std::move(exchange));
  Advance();
}

void EncoderStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  bytes_ -= answered_.front()->bytes;
  answered_.pop_front();
  if (!ok) cancelled_ = true;
  Advance();
}

void EncoderStream::OnCancel() {
  std::vector<std::shared_ptr<Cancellation>> cancellations;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    for (const std::shared_ptr<Exchange>& exchange : unanswered_) {
      cancellations.push_back(exchange->cancellation);
    }
    Advance();
  }
  for (const std::shared_ptr<Cancellation>& cancellation : cancellations) cancellation->Cancel();
}

void EncoderStream::OnDone() {
  on_done_(this);
  self_.reset();
}

bool EncoderStream::MayRead() const {
  const int64_t requests = static_cast<int64_t>(unanswered_.size() + answered_.size());
  return reading_ == nullptr && !half_closed_ && !cancelled_ && !closing_ &&
         requests < limits_.max_requests && bytes_ < limits_.max_bytes;
}

bool EncoderStream::MayFinish() const {
  return !writing_ && unanswered_.empty() && answered_.empty() &&
         (half_closed_ || cancelled_ || closing_);
}

void EncoderStream::Advance() {
  if (finished_) return;
  if (cancelled_ && !writing_) {
    for (const std::shared_ptr<Exchange>& exchange : answered_) bytes_ -= exchange->bytes;
    answered_.clear();  // nobody is there to read them
  }
  if (!writing_ && !answered_.empty()) {
    writing_ = true;
    StartWrite(&answered_.front()->answer);
  }
  if (MayRead()) {
    reading_ = std::make_shared<Exchange>();
    StartRead(&reading_->request);
  }
  if (MayFinish()) {
    finished_ = true;
    if (cancelled_) {
      Finish(grpc::Status::CANCELLED);
    } else if (half_closed_) {
      Finish(grpc::Status::OK);
    } else {
      Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is draining"));
    }
  }
}

}  // namespace attendant
