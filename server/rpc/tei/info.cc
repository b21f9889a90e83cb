// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/tei/info.h"

#include <string>

#include "kernels/core/status_macros.h"
#include "server/rpc/tei/runs.h"

namespace attendant::tei {
namespace {

v1::ModelType TypeOf(const EncoderInfo& model) {
  if (!model.labels.has_value()) return v1::MODEL_TYPE_EMBEDDING;
  return model.labels->size() == 1 ? v1::MODEL_TYPE_RERANKER : v1::MODEL_TYPE_CLASSIFIER;
}

absl::Status Fill(const Dependencies& dependencies, const std::string& name,
                  v1::InfoResponse& response) {
  ATTENDANT_ASSIGN_OR_RETURN(const ModelStatus status,
                             dependencies.encode.requests.models.Describe(name));
  const EncoderInfo& model = *status.info;
  response.set_version(dependencies.version);
  response.set_model_id(name);
  response.set_model_dtype(std::string(DTypeName(model.dtype)));
  response.set_model_type(TypeOf(model));
  response.set_max_concurrent_requests(static_cast<uint32_t>(model.max_queued_requests));
  response.set_max_input_length(static_cast<uint32_t>(model.max_text_tokens));
  response.set_max_batch_tokens(static_cast<uint32_t>(model.max_batch_tokens));
  response.set_max_batch_requests(static_cast<uint32_t>(model.max_batch_sequences));
  response.set_max_client_batch_size(
      static_cast<uint32_t>(dependencies.encode.limits.max_request_sequences));
  response.set_tokenization_workers(1);
  return absl::OkStatus();
}

}  // namespace

InfoService::InfoService(const Dependencies& dependencies)
    : RawService(dependencies.encode.requests.gate, dependencies.encode.requests.budgets) {
  ServeSmallCall<v1::InfoRequest, v1::InfoResponse>(
      "Info", MethodGroup::kRead,
      [&dependencies](const IncomingCall& call, const v1::InfoRequest&,
                      v1::InfoResponse& response) -> absl::Status {
        ATTENDANT_ASSIGN_OR_RETURN(
            const std::string name,
            ModelOf(call.context, dependencies.encode.requests.models, AnyEncoder));
        return Fill(dependencies, name, response);
      });
}

}  // namespace attendant::tei
