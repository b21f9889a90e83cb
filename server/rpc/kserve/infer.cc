// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve/infer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "server/rpc/kserve/parameters.h"
#include "server/rpc/kserve/tensors.h"

namespace attendant {

struct KServeInference::Call {
  const inference::ModelInferRequest& request;
  absl::Time deadline;
  std::shared_ptr<Cancellation> cancellation;
  inference::ModelInferResponse& response;
  Done done;
  absl::Time arrival = absl::Now();
  std::optional<FoundModel> found{};  // empty: refused before it was found
  int64_t seq = 0;
  absl::Duration decode{};

  // The base name, known or not: what metrics go by.
  std::string model() const { return std::string(SplitServedName(request.model_name()).first); }
};

void KServeInference::Start(const inference::ModelInferRequest& request, absl::Time deadline,
                            std::shared_ptr<Cancellation> cancellation,
                            inference::ModelInferResponse& response, Done done) {
  response.set_id(request.id());
  std::unique_ptr<Call> call(new Call{.request = request,
                                      .deadline = deadline,
                                      .cancellation = std::move(cancellation),
                                      .response = response,
                                      .done = std::move(done)});
  absl::StatusOr<ByteBudget::Share> share =
      pipeline_.TakeRequest(call->model(), request.ByteSizeLong());
  if (!share.ok()) return Complete(*call, share.status());
  call->cancellation->HoldRequest(*std::move(share));
  ReadRequest(request.ByteSizeLong(), executor_,
              [this, call = std::move(call)]() mutable { Submit(std::move(call)); });
}

void KServeInference::Submit(std::unique_ptr<Call> call) {
  if (call->cancellation->cancelled()) {
    return Complete(*call, absl::CancelledError("cancelled by the client"));
  }
  const absl::Time start = absl::Now();
  absl::StatusOr<EncodeInput> input = Decode(*call);
  if (!input.ok()) return Complete(*call, input.status());
  call->decode = absl::Now() - start;
  // The answer may come, and end the call, before Encode returns.
  const std::shared_ptr<Cancellation> cancellation = call->cancellation;
  cancellation->SetTicket(pipeline_.Encode(
      *std::move(input),
      [&cancellation](ByteBudget::Share share) { cancellation->HoldResponse(std::move(share)); },
      [this, call = std::move(call)](const absl::StatusOr<EncodeOutput>& output) {
        Complete(*call, output);
      }));
}

absl::StatusOr<EncodeInput> KServeInference::Decode(Call& call) const {
  const inference::ModelInferRequest& request = call.request;
  absl::StatusOr<FoundModel> found = models_.Find(request.model_name(), request.model_version());
  if (!found.ok()) return found.status();
  call.found = *std::move(found);
  const ServedModel& served = call.found->served;

  const absl::StatusOr<InferParameters> parameters = DecodeInferParameters(request.parameters());
  if (!parameters.ok()) return parameters.status();
  const absl::Status outputs = CheckRequestedOutputs(request, served);
  if (!outputs.ok()) return outputs;
  absl::StatusOr<InferInputs> inputs = DecodeInferInputs(request, served);
  if (!inputs.ok()) return inputs.status();
  call.seq = inputs->seq;
  call.deadline = std::min(call.deadline, call.arrival + parameters->timeout);

  EncodeInput input;
  input.method = Method::kModelInfer;
  input.model = call.model();
  input.served_name = served.kind;
  input.sequences = std::move(inputs->sequences);
  input.last_hidden_state = served.kind == ServedName::kEncoder;
  input.pooled = !input.last_hidden_state;
  input.priority = parameters->priority;
  input.deadline = call.deadline;
  return input;
}

void KServeInference::Complete(Call& call, const absl::StatusOr<EncodeOutput>& output) {
  if (!output.ok()) {
    return End(call, DeadlineInsteadOfCancelled(output.status(), call.deadline), nullptr,
               absl::ZeroDuration());
  }
  const absl::Time start = absl::Now();
  call.response.set_model_name(call.found->served.name);
  call.response.set_model_version(std::string(kKServeVersion));
  AppendInferOutput(*output, call.found->served, call.seq, call.response);
  End(call, absl::OkStatus(), &*output, absl::Now() - start);
}

void KServeInference::End(Call& call, const absl::Status& status, const EncodeOutput* output,
                          absl::Duration serialize) {
  const absl::Time now = absl::Now();
  const absl::Duration total = now - call.arrival;
  pipeline_.Finish(Method::kModelInfer, call.model(), status, output, serialize, total);
  if (call.found.has_value() && output == nullptr) {
    call.found->statistics().RecordFailure(total);
  } else if (call.found.has_value()) {
    call.found->statistics().RecordSuccess(
        {.sequences = static_cast<int64_t>(output->sequences.size()),
         .total = total,
         .queue = output->queue,
         .compute_input = call.decode + output->tokenize,
         .compute_infer = output->compute,
         .compute_output = serialize},
        now);
  }
  call.done(status);
}

}  // namespace attendant
