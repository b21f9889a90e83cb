// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/encoder_service.h"

#include <utility>

#include "server/access/api_keys.h"
#include "server/protocols/encoder/encoder_run.h"
#include "server/rpc/call/calls.h"

namespace attendant {

WireRules EncodeRules(const EncodeLimits& limits) {
  return {.limits = {{"attendant.v1.Sequences.sequences", limits.max_request_sequences}},
          .id_field = "id",
          .model_field = "model"};
}

EncoderService::EncoderService(const EncodeDependencies& dependencies, const StreamLimits& limits)
    : RawService(dependencies.requests.gate, dependencies.requests.budgets),
      encode_(dependencies.requests.budgets, limits,
              {.unary = Method::kEncode,
               .stream = Method::kEncodeStream,
               .rules = EncodeRules(dependencies.limits),
               .response_of = ResponseOf<v1::EncodeStreamResponse>,
               .finisher = FinishStreamAnswer,
               .start = [&dependencies](RequestCall call, v1::EncodeResponse& response) {
                 StartEncode(dependencies, std::move(call), response);
               }}) {
  ServeRequests("Encode", "EncodeStream", encode_);
  ServeSmall<v1::ListModelsRequest, v1::ListModelsResponse>(
      "ListModels", MethodGroup::kRead,
      [&dependencies](const v1::ListModelsRequest&, v1::ListModelsResponse& response) {
        DescribeEncoders(dependencies.requests.models, response);
        return absl::OkStatus();
      });
}

}  // namespace attendant
