// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve_infer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "server/rpc/kserve_parameters.h"
#include "server/rpc/kserve_tensors.h"

namespace attendant {

struct KServeInference::Call {
  absl::Time arrival;
  std::string model;                // the base name, known or not: what metrics go by
  std::optional<FoundModel> found;  // empty: refused before it was found
  int64_t seq = 0;
  absl::Duration decode;
  inference::ModelInferResponse* response = nullptr;
  Done done;
};

EncodePipeline::Ticket KServeInference::Start(const inference::ModelInferRequest& request,
                                              absl::Time deadline,
                                              inference::ModelInferResponse* response, Done done) {
  Call call{.arrival = absl::Now(),
            .model = std::string(SplitServedName(request.model_name()).first),
            .found = std::nullopt,
            .decode = absl::ZeroDuration(),
            .response = response,
            .done = std::move(done)};
  response->set_id(request.id());
  absl::StatusOr<EncodeInput> input = Decode(request, deadline, call);
  if (!input.ok()) {
    Complete(call, input.status());
    return {};
  }
  call.decode = absl::Now() - call.arrival;
  return pipeline_.Encode(
      *std::move(input),
      [this, call = std::move(call)](const absl::StatusOr<EncodeOutput>& output) mutable {
        Complete(call, output);
      });
}

absl::StatusOr<EncodeInput> KServeInference::Decode(const inference::ModelInferRequest& request,
                                                    absl::Time deadline, Call& call) const {
  absl::StatusOr<FoundModel> found = models_.Find(request.model_name(), request.model_version());
  if (!found.ok()) return found.status();
  call.found = *std::move(found);
  const ServedModel& served = call.found->served;

  const absl::StatusOr<InferParameters> parameters = DecodeInferParameters(request.parameters());
  if (!parameters.ok()) return parameters.status();
  absl::Status outputs = CheckRequestedOutputs(request, served);
  if (!outputs.ok()) return outputs;
  absl::StatusOr<InferInputs> inputs = DecodeInferInputs(request, served);
  if (!inputs.ok()) return inputs.status();
  call.seq = inputs->seq;

  EncodeInput input;
  input.method = Method::kModelInfer;
  input.model = call.model;
  input.served_name = served.kind;
  input.sequences = std::move(inputs->sequences);
  input.last_hidden_state = served.kind == ServedName::kEncoder;
  input.pooled = !input.last_hidden_state;
  input.priority = parameters->priority;
  input.deadline = std::min(deadline, call.arrival + parameters->timeout);
  return input;
}

void KServeInference::Complete(Call& call, const absl::StatusOr<EncodeOutput>& output) {
  if (!output.ok()) {
    Count(call, output.status(), nullptr, absl::ZeroDuration());
    call.done(output.status());
    return;
  }
  const absl::Time start = absl::Now();
  inference::ModelInferResponse& response = *call.response;
  response.set_model_name(call.found->served.name);
  response.set_model_version(std::string(kKServeVersion));
  AppendInferOutput(*output, call.found->served, call.seq, response);
  Count(call, absl::OkStatus(), &*output, absl::Now() - start);
  call.done(absl::OkStatus());
}

void KServeInference::Count(const Call& call, const absl::Status& status,
                            const EncodeOutput* output, absl::Duration serialize) {
  const absl::Time now = absl::Now();
  const absl::Duration total = now - call.arrival;
  pipeline_.Finish(Method::kModelInfer, call.model, status, output, serialize, total);
  if (!call.found.has_value()) return;
  if (output == nullptr) {
    call.found->statistics().RecordFailure(total);
    return;
  }
  call.found->statistics().RecordSuccess(
      {.sequences = static_cast<int64_t>(output->sequences.size()),
       .total = total,
       .queue = output->queue,
       .compute_input = call.decode + output->tokenize,
       .compute_infer = output->compute,
       .compute_output = serialize},
      now);
}

}  // namespace attendant
