// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/attention/attend_call.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "server/rpc/attention/plan.h"

namespace attendant {
namespace {

// The phases of one request, as they become known.
struct Times {
  absl::Time arrival = absl::Now();
  absl::Duration read, queue, compute, serialize;
};

struct Run {
  AttendCall call;
  const v1::AttendRequest& request;
  v1::AttendResponse& response;
  absl::AnyInvocable<void(const absl::Status&)> done;
  Times times{};
  AttentionModel* model = nullptr;

  const std::string& name() const {
    static const auto& built_in = *new std::string(kAttentionName);
    return request.model().empty() ? built_in : request.model();
  }

  // Counts and answers; `task` is null for a request that failed.
  void End(const absl::Status& status, const AttentionTask* task) {
    const AttentionServing& serving = call.serving;
    if (!serving.models.Contains(name())) {
      serving.metrics.CountUnknownModel(call.method, status.code());
      return done(status);
    }
    ModelMetrics& metrics = serving.metrics.ForModel(name());
    metrics.CountRequest(call.method, status.code());
    metrics.ObservePhase(call.method, Phase::kTotal, absl::Now() - times.arrival);
    if (task != nullptr) CountPhases(*task, metrics);
    done(status);
  }

  void CountPhases(const AttentionTask& task, ModelMetrics& metrics) const {
    metrics.ObservePhase(call.method, Phase::kTokenize, times.read);
    metrics.ObservePhase(call.method, Phase::kQueue, times.queue);
    metrics.ObservePhase(call.method, Phase::kCompute, times.compute);
    metrics.ObservePhase(call.method, Phase::kSerialize, times.serialize);
    const attention::Sequences& queries = task.call.queries;
    for (int64_t i = 0; i < queries.batch(); ++i) metrics.ObserveSequence(queries.len(i));
    metrics.CountTokens(task.tokens(), 0);
  }
};

void FillTimings(const Times& times, v1::Timings& timings) {
  timings.set_tokenize_us(absl::ToInt64Microseconds(times.read));
  timings.set_queue_us(absl::ToInt64Microseconds(times.queue));
  timings.set_compute_us(absl::ToInt64Microseconds(times.compute));
  timings.set_total_us(absl::ToInt64Microseconds(absl::Now() - times.arrival));
}

void Answer(Run& run, absl::StatusOr<RequestResult> result) {
  run.model->metrics->AddInflight(-1);
  if (!result.ok()) {
    return run.End(DeadlineInsteadOfCancelled(result.status(), run.call.deadline), nullptr);
  }
  const absl::Time start = absl::Now();
  auto& task = static_cast<AttentionTask&>(*result->operation);  // as Submit made it
  run.times.queue = result->queue;
  run.times.compute = result->compute;
  run.response.set_id(run.request.id());
  run.response.set_model(run.request.model());
  const absl::StatusOr<NumberFormat> format = AnswerFormat(run.request);  // OK: it was planned
  EncodeAttention(format.value_or(NumberFormat::kF32), task, run.response);
  FillTimings(run.times, *run.response.mutable_timings());
  run.times.serialize = absl::Now() - start;
  run.End(absl::OkStatus(), &task);
}

absl::StatusOr<ByteBudget::Share> Take(ByteBudget& budget, int64_t bytes, ModelMetrics& metrics) {
  absl::StatusOr<ByteBudget::Share> share = budget.Take(bytes);
  if (!share.ok()) metrics.CountRejected(MemoryBudgets::kRejected);
  return share;
}

// Finds the model, checks everything, and accounts for the memory that operands and answer take.
absl::StatusOr<std::unique_ptr<AttentionTask>> Prepare(Run& run) {
  const AttentionServing& serving = run.call.serving;
  absl::StatusOr<AttentionModel*> model = serving.models.FindAttention(run.name());
  if (!model.ok()) return model.status();
  run.model = *model;
  ModelMetrics& metrics = *run.model->metrics;
  if (run.call.deadline <= absl::Now()) {
    metrics.CountRejected(RejectReasonName(RejectReason::kDeadline));
    return absl::DeadlineExceededError("the deadline passed before the request was read");
  }
  absl::StatusOr<std::unique_ptr<AttentionTask>> task = PlanAttend(run.request, *run.model);
  if (!task.ok()) return task;
  absl::StatusOr<ByteBudget::Share> operands =
      Take(serving.budgets.requests, (*task)->operand_bytes, metrics);
  if (!operands.ok()) return operands.status();
  (*task)->memory = *std::move(operands);
  absl::Status status = MeasureAttend(run.request, *run.model, serving.max_response_bytes, **task);
  if (!status.ok()) return status;
  absl::StatusOr<ByteBudget::Share> response =
      Take(serving.budgets.responses, ResponseBytes((*task)->call, (*task)->cost), metrics);
  if (!response.ok()) return response.status();
  run.call.cancellation->HoldResponse(*std::move(response));
  FillTask(run.request, **task);
  return task;
}

void Submit(std::unique_ptr<Run> run) {
  if (run->call.cancellation->cancelled()) {
    return run->End(absl::CancelledError("cancelled by the client"), nullptr);
  }
  const absl::Time start = absl::Now();
  absl::StatusOr<std::unique_ptr<AttentionTask>> task = Prepare(*run);
  if (!task.ok()) return run->End(task.status(), nullptr);
  run->times.read = absl::Now() - start;
  run->model->metrics->AddInflight(1);
  // The answer may come, and end the call, before Submit returns: nothing of `run` is used after.
  Batcher& batcher = *run->model->batcher;
  const std::shared_ptr<Cancellation> cancellation = run->call.cancellation;
  PendingRequest pending;
  pending.work = *std::move(task);
  pending.deadline = run->call.deadline;
  pending.priority = run->request.priority();
  pending.done = [run = std::move(run)](absl::StatusOr<RequestResult> result) mutable {
    Answer(*run, std::move(result));
  };
  cancellation->SetTicket({&batcher, batcher.Submit(std::move(pending))});
}

}  // namespace

void RunAttendCall(const AttendCall& call, const v1::AttendRequest& request,
                   v1::AttendResponse& response,
                   absl::AnyInvocable<void(const absl::Status&)> done) {
  auto run = std::unique_ptr<Run>(
      new Run{.call = call, .request = request, .response = response, .done = std::move(done)});
  const size_t bytes = request.ByteSizeLong();
  absl::StatusOr<ByteBudget::Share> share =
      call.serving.budgets.requests.Take(static_cast<int64_t>(bytes));
  if (!share.ok()) {
    if (call.serving.models.Contains(run->name())) {
      call.serving.metrics.ForModel(run->name()).CountRejected(MemoryBudgets::kRejected);
    }
    return run->End(share.status(), nullptr);
  }
  call.cancellation->HoldRequest(*std::move(share));
  ReadRequest(bytes, call.executor, [run = std::move(run)]() mutable { Submit(std::move(run)); });
}

}  // namespace attendant
