// SPDX-License-Identifier: Apache-2.0
#include "server/requests/encode_run.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "server/requests/encode_validation.h"

namespace attendant {
namespace {

bool FullyMasked(const EncodedSequence& sequence) {
  return !sequence.attention_mask.empty() &&
         std::all_of(sequence.attention_mask.begin(), sequence.attention_mask.end(),
                     [](uint8_t keep) { return keep == 0; });
}

int64_t UnmaskedTokens(const EncodedSequence& sequence) {
  const int64_t len = static_cast<int64_t>(sequence.token_ids.size());
  return len - std::count(sequence.attention_mask.begin(), sequence.attention_mask.end(), 0);
}

// Puts the batcher's results beside the sequences they belong to. A fully masked one was never
// computed: its pooled vector is zeros.
EncodeOutput Gather(ValidRequest request, RequestResult result) {
  EncodeOutput output = std::move(request.output);
  auto next = result.sequences.begin();
  for (EncodedSequence& sequence : output.sequences) {
    if (!FullyMasked(sequence)) {
      sequence.result = std::move(*next++);
    } else if (request.outputs.pooling != Pooling::kNone) {
      sequence.result.pooled.assign(static_cast<size_t>(request.outputs.dims), 0.0f);
    }
  }
  output.queue = result.queue;
  output.compute = result.compute;
  return output;
}

// A request while the batcher has it.
struct Submitted {
  EncoderModel* model;
  std::optional<ServedName> served_name;
  ValidRequest request;
  absl::AnyInvocable<void(absl::StatusOr<EncodeOutput>)> done;

  void Enter() {
    model->metrics->AddInflight(1);
    if (served_name) model->statistics.Enter(*served_name);
  }
  void Complete(absl::StatusOr<RequestResult> result) {
    model->metrics->AddInflight(-1);
    if (served_name) model->statistics.Leave(*served_name);
    if (!result.ok()) return done(result.status());
    done(Gather(std::move(request), *std::move(result)));
  }
};

Ticket Submit(Submitted submitted, absl::Time deadline, int priority) {
  submitted.Enter();
  if (submitted.request.sequences.empty()) {
    submitted.Complete(RequestResult{});
    return {};
  }
  EncoderModel& model = *submitted.model;
  PendingRequest pending;
  pending.work = EncodeWork{.sequences = std::move(submitted.request.sequences),
                            .outputs = submitted.request.outputs,
                            .layers = submitted.request.output.layers};
  pending.deadline = deadline;
  pending.priority = priority;
  pending.done = [submitted = std::move(submitted)](absl::StatusOr<RequestResult> result) mutable {
    submitted.Complete(std::move(result));
  };
  return {model.batcher.get(), model.batcher->Submit(std::move(pending))};
}

void CountTokens(ModelMetrics& metrics, const EncodeOutput& output) {
  int64_t valid = 0;
  int64_t padding = 0;
  for (const EncodedSequence& sequence : output.sequences) {
    const int64_t tokens = UnmaskedTokens(sequence);
    valid += tokens;
    padding += static_cast<int64_t>(sequence.token_ids.size()) - tokens;
    metrics.ObserveSequence(tokens);
  }
  metrics.CountTokens(valid, padding);
}

}  // namespace

void ScatterRows(const EncodedSequence& sequence, int64_t hidden, const float* values,
                 float* rows) {
  const float* next = values;
  for (size_t i = 0; i < sequence.token_ids.size(); ++i, rows += hidden) {
    if (!sequence.attention_mask.empty() && sequence.attention_mask[i] == 0) {
      std::fill_n(rows, hidden, 0.0f);
    } else {
      std::copy_n(next, hidden, rows);
      next += hidden;
    }
  }
}

EncodePipeline::EncodePipeline(ModelRegistry& models, ServerMetrics& metrics,
                               MemoryBudgets& budgets, const EncodeLimits& limits)
    : models_(models), metrics_(metrics), budgets_(budgets), limits_(limits) {}

absl::StatusOr<ByteBudget::Share> EncodePipeline::TakeRequest(const std::string& model,
                                                              size_t bytes) {
  absl::StatusOr<ByteBudget::Share> share = budgets_.requests.Take(static_cast<int64_t>(bytes));
  if (!share.ok() && models_.Contains(model)) {
    metrics_.ForModel(model).CountRejected(MemoryBudgets::kRejected);
  }
  return share;
}

Ticket EncodePipeline::Encode(EncodeInput input, absl::FunctionRef<void(ByteBudget::Share)> hold,
                              absl::AnyInvocable<void(absl::StatusOr<EncodeOutput>)> done) {
  absl::StatusOr<EncoderModel*> model = models_.Find(input.model);
  if (!model.ok()) {
    done(model.status());
    return {};
  }
  if (input.deadline <= absl::Now()) {
    (*model)->metrics->CountRejected(RejectReasonName(RejectReason::kDeadline));
    done(absl::DeadlineExceededError("the deadline passed before the request was read"));
    return {};
  }
  absl::StatusOr<ValidRequest> request = ValidateRequest(**model, limits_, input);
  if (!request.ok()) {
    done(request.status());
    return {};
  }
  absl::StatusOr<ByteBudget::Share> share = budgets_.responses.Take(request->response_bytes);
  if (!share.ok()) {
    (*model)->metrics->CountRejected(MemoryBudgets::kRejected);
    done(share.status());
    return {};
  }
  hold(*std::move(share));
  return Submit({*model, input.served_name, *std::move(request), std::move(done)}, input.deadline,
                input.priority);
}

void EncodePipeline::Finish(Method method, const std::string& model, const absl::Status& status,
                            const EncodeOutput* output, absl::Duration serialize,
                            absl::Duration total) {
  if (!models_.Contains(model)) return metrics_.CountUnknownModel(method, status.code());
  ModelMetrics& metrics = metrics_.ForModel(model);
  metrics.CountRequest(method, status.code());
  metrics.ObservePhase(method, Phase::kTotal, total);
  if (output == nullptr) return;
  metrics.ObservePhase(method, Phase::kTokenize, output->tokenize);
  metrics.ObservePhase(method, Phase::kQueue, output->queue);
  metrics.ObservePhase(method, Phase::kCompute, output->compute);
  metrics.ObservePhase(method, Phase::kSerialize, serialize);
  CountTokens(metrics, *output);
}

}  // namespace attendant
