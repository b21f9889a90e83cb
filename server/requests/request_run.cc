// SPDX-License-Identifier: Apache-2.0
#include "server/requests/request_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

constexpr int kMaxPriority = 100;

// Up to here, tokenizing takes less time than a transport's thread may be kept from other calls.
constexpr int64_t kInlineBytes = int64_t{32} << 10;

// Up to here, building an answer takes no longer than other answers may wait for it: of JSON with
// gzip, a fifth of a second.
constexpr int64_t kSmallAnswerBytes = int64_t{1} << 20;

absl::Status DeadlineInsteadOfCancelled(const absl::Status& status, absl::Time deadline) {
  if (!absl::IsCancelled(status) || !EndsByDeadline(deadline, SteadyNow())) return status;
  return absl::DeadlineExceededError("the deadline passed before the answer was ready");
}

}  // namespace

absl::Status CheckPriority(int priority) {
  if (priority >= -kMaxPriority && priority <= kMaxPriority) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("priority is ", priority, ", it must be from ",
                                                 -kMaxPriority, " to ", kMaxPriority));
}

void RequestRun::Start(std::unique_ptr<RequestRun> run) {
  const RequestDependencies& dependencies = run->dependencies_;
  const int64_t bytes = run->request_bytes_ = run->call_.message->bytes();
  run->span_ = dependencies.gate.RequestSpan(run->call_.state->call());
  const absl::Status acquired =
      run->CountRejected(run->call_.state->AcquireRequestUpTo(kRequestBytes + bytes));
  if (!acquired.ok()) return run->End(acquired);
  const int64_t parse_bytes = run->call_.message->parse_bytes();
  Take(std::move(run), parse_bytes, Read);
}

void RequestRun::Take(std::unique_ptr<RequestRun> run, int64_t bytes, Step step) {
  if (run->is_large_ || bytes <= kInlineBytes) return step(std::move(run));
  run->is_large_ = true;
  const Executor& executor = run->dependencies_.large_requests;
  executor([run = std::move(run), step]() mutable { step(std::move(run)); });
}

bool RequestRun::Cancelled() {
  if (!call_.state->cancelled()) return false;
  EndEarly(CancelledByClient());
  return true;
}

void RequestRun::Read(std::unique_ptr<RequestRun> run) {
  if (run->Cancelled()) return;
  const absl::Time start = SteadyNow();
  const absl::Status read = run->ReadMessage();
  if (!read.ok()) return run->End(read);
  run->call_.deadline = std::min(run->call_.deadline, run->times_.arrival + run->Timeout());
  run->times_.decode = SteadyNow() - start;
  if (!run->ModelNeedsLoad()) return DecodeMessage(std::move(run));
  AwaitModel(std::move(run));
}

bool RequestRun::ModelNeedsLoad() const {
  return dependencies_.models.NeedsLoad(call_.model, ModelVersion());
}

void RequestRun::AwaitModel(std::unique_ptr<RequestRun> run) {
  const std::string model = run->call_.model;
  const std::shared_ptr<CallState> state = run->call_.state;
  const RequestDependencies& dependencies = run->dependencies_;
  const absl::Time deadline = run->call_.deadline;
  run->is_large_ = true;
  auto then = [&executor = dependencies.large_requests,
               run = std::move(run)](const absl::Status& status) mutable {
    executor([run = std::move(run), status]() mutable {
      status.ok() ? DecodeMessage(std::move(run)) : run->EndEarly(status);
    });
  };
  ModelWaits& waits = dependencies.waits;
  const ModelWaits::Id id = waits.Add(deadline, std::move(then));
  state->SetWaiting(waits, id);
  dependencies.models.LoadIdle(model,
                               [&waits, id](const absl::Status& status) { waits.End(id, status); });
}

void RequestRun::EndEarly(const absl::Status& status) {
  const absl::Status end = DeadlineInsteadOfCancelled(status, call_.deadline);
  if (absl::IsDeadlineExceeded(end)) CountRejected(RejectReasonName(RejectReason::kDeadline));
  if (absl::IsCancelled(end)) CountRejected(RejectReasonName(RejectReason::kCancelled));
  End(end);
}

void RequestRun::DecodeMessage(std::unique_ptr<RequestRun> run) {
  if (run->Cancelled()) return;
  const absl::Time start = SteadyNow();
  absl::StatusOr<std::shared_ptr<ServableModel>> model = run->Decode();
  if (!model.ok()) {
    // It may have become idle since it was looked at.
    const bool waits = absl::IsUnavailable(model.status()) && run->ModelNeedsLoad();
    return waits ? AwaitModel(std::move(run)) : run->End(model.status());
  }
  run->model_ = *std::move(model);
  run->model_->Touch();
  run->times_.decode += SteadyNow() - start;
  const int64_t bytes = run->PrepareBytes();
  Take(std::move(run), bytes, Submit);
}

void RequestRun::Submit(std::unique_ptr<RequestRun> run) {
  if (run->Cancelled()) return;
  absl::StatusOr<WorkRequest> request = run->MakeRequest();
  if (!request.ok()) return run->End(request.status());
  run->model_->metrics->AddInflight(1);
  // The answer may come, and end the call, before Submit returns: `run` is not used after that.
  const std::shared_ptr<Batcher> batcher(run->model_, run->model_->batcher.get());
  const std::shared_ptr<CallState> state = run->call_.state;
  request->deadline = run->call_.deadline;
  request->client = state->call().client;
  request->trace = run->span_;
  if (run->span_ != 0) request->batches = &run->batches_;
  request->done = [run = std::move(run)](absl::StatusOr<FinishedWork> finished) mutable {
    Complete(std::move(run), std::move(finished));
  };
  const RequestId id = batcher->Submit(*std::move(request));
  state->SetSubmitted(batcher, id);
}

absl::Status RequestRun::ReadMessage() {
  RequestMessage& message = *call_.message;
  const absl::StatusOr<int64_t> memory_bytes = message.Scan();
  TakeNames();
  absl::Status status = memory_bytes.status();
  if (status.ok()) {
    ATTENDANT_RETURN_IF_ERROR(AcquireRequest(*memory_bytes));
    status = message.Parse();
    TakeNames();
  }
  if (absl::IsInvalidArgument(status)) dependencies_.metrics.CountRefused(Refusal::kMessage);
  // Of a message that came in parts: one of them found no memory.
  if (absl::IsResourceExhausted(status)) return CountRejected(status);
  return status;
}

void RequestRun::TakeNames() {
  call_.model = ModelName(call_.message->model());
  call_.state->SetClientId(call_.message->id());
}

absl::StatusOr<WorkRequest> RequestRun::MakeRequest() {
  const absl::Time start = SteadyNow();
  if (call_.deadline <= start) {
    return PastDeadline("the deadline passed before the request was read");
  }
  ATTENDANT_ASSIGN_OR_RETURN(WorkRequest request, Prepare());
  call_.message.reset();  // the queue holds what is to be computed, and nothing twice
  const absl::Time end = SteadyNow();
  times_.decode += end - start;
  times_.submitted = end - times_.arrival;
  return request;
}

absl::Status RequestRun::PastDeadline(absl::string_view message) const {
  model_->metrics->CountRejected(RejectReasonName(RejectReason::kDeadline));
  return absl::DeadlineExceededError(message);
}

void RequestRun::Complete(std::unique_ptr<RequestRun> run, absl::StatusOr<FinishedWork> finished) {
  run->model_->metrics->AddInflight(-1);
  run->model_->Touch();
  if (!finished.ok()) return run->End(finished.status());
  if (run->call_.state->response_bytes() <= kSmallAnswerBytes) {
    return run->BuildAnswer(*std::move(finished));
  }
  const Executor& executor = run->dependencies_.large_answers;
  executor([run = std::move(run), finished = *std::move(finished)]() mutable {
    run->BuildAnswer(std::move(finished));
  });
}

void RequestRun::BuildAnswer(FinishedWork finished) {
  if (Cancelled()) return;
  times_.queue = finished.queue;
  times_.compute = finished.compute;
  const absl::Time start = SteadyNow();
  if (call_.deadline <= start) {
    return End(PastDeadline("the deadline passed before the answer was written"));
  }
  times_.answering = start - times_.arrival;
  Answer(std::move(finished.work));
  answer_bytes_ = call_.write ? call_.write() : AnswerBytes();
  times_.serialize = SteadyNow() - start;
  End(absl::OkStatus());
}

void RequestRun::End(const absl::Status& status) {
  const RequestTokens tokens = Count(status);
  OnEnd(status);
  Report(status, tokens);
  call_.done(status);
}

RequestTokens RequestRun::Count(const absl::Status& status) const {
  const std::shared_ptr<ModelMetrics> found = dependencies_.metrics.FindModel(call_.model);
  if (found == nullptr) {
    dependencies_.metrics.CountUnknownModel(call_.method, status.code());
    return {};
  }
  ModelMetrics& metrics = *found;
  metrics.CountRequest(call_.method, status.code());
  metrics.ObservePhase(call_.method, Phase::kTotal, times_.total());
  if (!status.ok()) return {};
  metrics.ObservePhase(call_.method, Phase::kTokenize, times_.decode);
  metrics.ObservePhase(call_.method, Phase::kQueue, times_.queue);
  metrics.ObservePhase(call_.method, Phase::kCompute, times_.compute);
  metrics.ObservePhase(call_.method, Phase::kSerialize, times_.serialize);
  const RequestTokens tokens = CountTokens(metrics);
  metrics.CountTokens(tokens.valid, tokens.padding);
  return tokens;
}

void RequestRun::Report(const absl::Status& status, const RequestTokens& tokens) const {
  CallGate& gate = dependencies_.gate;
  const std::string id = gate.logging() || span_ != 0 ? call_.state->client_id() : "";
  gate.Ended(call_.state->call(), {.model = call_.model,
                                   .message_id = id,
                                   .code = status.code(),
                                   .sequences = tokens.sequences,
                                   .tokens = tokens.valid,
                                   .request_bytes = request_bytes_,
                                   .response_bytes = answer_bytes_,
                                   .total = times_.total(),
                                   .tokenize = times_.decode,
                                   .queue = times_.queue,
                                   .compute = times_.compute,
                                   .serialize = times_.serialize,
                                   .span = span_,
                                   .arrival = times_.arrival,
                                   .submitted = times_.submitted,
                                   .answering = times_.answering,
                                   .batches = batches_});
}

absl::Status RequestRun::AcquireRequest(int64_t bytes) {
  return CountRejected(call_.state->AcquireRequest(bytes));
}

absl::Status RequestRun::AcquireResponse(int64_t bytes) {
  return CountRejected(call_.state->AcquireResponse(bytes));
}

absl::StatusOr<ByteBudget::Share> RequestRun::AcquireOwn(int64_t bytes) {
  absl::StatusOr<ByteBudget::Share> share = call_.state->memory().AcquireRequest(bytes);
  ATTENDANT_RETURN_IF_ERROR(CountRejected(share.status()));
  return share;
}

absl::Status RequestRun::CountRejected(const absl::Status& status) const {
  if (!status.ok()) CountRejected(MemoryBudgets::kRejected);
  return status;
}

void RequestRun::CountRejected(absl::string_view reason) const {
  const std::shared_ptr<ModelMetrics> metrics = dependencies_.metrics.FindModel(call_.model);
  if (metrics != nullptr) metrics->CountRejected(reason);
}

}  // namespace attendant
