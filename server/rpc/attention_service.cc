// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/attention_service.h"

#include <utility>

#include "server/access/api_keys.h"
#include "server/rpc/call/calls.h"

namespace attendant {

WireRules AttendRules() { return {.limits = {}, .id_field = "id", .model_field = "model"}; }

AttentionService::AttentionService(const AttendDependencies& dependencies,
                                   const StreamLimits& limits)
    : RawService(dependencies.requests.gate, dependencies.requests.budgets),
      dependencies_(dependencies),
      attend_(dependencies.requests.budgets, limits,
              {.unary = Method::kAttend,
               .stream = Method::kAttendStream,
               .rules = AttendRules(),
               .response_of = ResponseOf<v1::AttendStreamResponse>,
               .finisher = FinishStreamAnswer,
               .start = [this](RequestCall call, v1::AttendResponse& response) {
                 StartAttend(dependencies_, std::move(call), response);
               }}) {
  ServeRequests("Attend", "AttendStream", attend_);
  ServeSmall<v1::ListAttentionRequest, v1::ListAttentionResponse>(
      "ListAttention", MethodGroup::kRead,
      [this](const v1::ListAttentionRequest&, v1::ListAttentionResponse& response) {
        DescribeAttention(dependencies_, response);
        return absl::OkStatus();
      });
}

}  // namespace attendant
