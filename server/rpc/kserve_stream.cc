// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve_stream.h"

#include <string>
#include <utility>
#include <vector>

namespace attendant {

KServeStream::KServeStream(KServeInference& inference, EncodePipeline& pipeline,
                           absl::Time deadline)
    : inference_(inference), pipeline_(pipeline), deadline_(deadline) {
  StartRead(&request_);
}

void KServeStream::OnReadDone(bool ok) {
  if (ok) return StartRequest();
  Next next;
  {
    absl::MutexLock lock(&mutex_);
    half_closed_ = true;
    reading_ = false;
    next = Decide();
  }
  Do(next);
}

// `reading_` stays true meanwhile: request_ is in use.
void KServeStream::StartRequest() {
  uint64_t number = 0;
  auto response = std::make_unique<inference::ModelStreamInferResponse>();
  inference::ModelInferResponse* infer_response = response->mutable_infer_response();
  {
    absl::MutexLock lock(&mutex_);
    number = requests_++;
    unanswered_[number].response = std::move(response);
  }
  const EncodePipeline::Ticket ticket = inference_.Start(
      request_, deadline_, infer_response,
      [this, number](const absl::Status& status) { OnRequestDone(number, status); });
  Next next;
  bool cancel = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto entry = unanswered_.find(number);
    if (entry != unanswered_.end()) entry->second.ticket = ticket;
    cancel = cancelled_;
    reading_ = false;
    next = Decide();
  }
  if (cancel) pipeline_.Cancel(ticket);
  Do(next);
}

void KServeStream::OnRequestDone(uint64_t number, const absl::Status& status) {
  Next next;
  {
    absl::MutexLock lock(&mutex_);
    inference::ModelStreamInferResponse& response = *unanswered_[number].response;
    if (!status.ok()) response.set_error_message(std::string(status.message()));
    // Clients that count responses wait for this mark: one request, one response, and it is the
    // last.
    (*response.mutable_infer_response()->mutable_parameters())["triton_final_response"]
        .set_bool_param(true);
    answers_.push_back(number);
    next = Decide();
  }
  Do(next);
}

void KServeStream::OnWriteDone(bool /*ok: a broken stream also fails the read, which ends it*/) {
  Next next;
  {
    absl::MutexLock lock(&mutex_);
    unanswered_.erase(answers_.front());
    answers_.pop_front();
    writing_ = false;
    next = Decide();
  }
  Do(next);
}

void KServeStream::OnCancel() {
  std::vector<EncodePipeline::Ticket> tickets;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    for (const auto& [number, unanswered] : unanswered_) tickets.push_back(unanswered.ticket);
  }
  for (const EncodePipeline::Ticket& ticket : tickets) pipeline_.Cancel(ticket);
}

void KServeStream::OnDone() { delete this; }

KServeStream::Next KServeStream::Decide() {
  Next next;
  if (!writing_ && !answers_.empty()) {
    writing_ = true;
    next.write = unanswered_[answers_.front()].response.get();
  }
  if (!reading_ && !half_closed_ && unanswered_.size() < kMaxInflight) {
    reading_ = true;
    next.read = true;
  }
  next.finish = half_closed_ && unanswered_.empty();
  return next;
}

void KServeStream::Do(const Next& next) {
  if (next.write != nullptr) StartWrite(next.write);
  if (next.read) StartRead(&request_);
  if (next.finish) Finish(grpc::Status::OK);
}

}  // namespace attendant
