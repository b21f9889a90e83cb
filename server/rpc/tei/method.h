// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/limits/limits.h"
#include "server/requests/encode_run.h"
#include "server/requests/only_model.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/raw_service.h"
#include "server/rpc/call/request_method.h"
#include "server/rpc/scan/wire_schema.h"

namespace attendant::tei {

// The dependencies of the services of tei.v1. They outlive all services.
struct Dependencies {
  const EncodeDependencies& encode;
  StreamLimits streams;
  std::string version;
};

// The model that a call's metadata names (NamedOrOnlyModel).
absl::StatusOr<std::string> ModelOf(const grpc::CallbackServerContext& context,
                                    const ModelRegistry& models, ModelNeed need);

// One method of tei.v1, unary and as a stream: a run of type Run answers each of its messages.
// Run::Request and Run::Response are the message types; a Run is made of EncodeDependencies, a
// RequestCall and the response. Thread-safe.
template <typename Run>
class TeiMethod final : public RequestMethod<typename Run::Request, typename Run::Response> {
 public:
  using Response = typename Run::Response;
  using Base = RequestMethod<typename Run::Request, Response>;

  // `dependencies` must outlive the method. `need`: the kind of models that it is for.
  TeiMethod(const Dependencies& dependencies, Method method, ModelNeed need,
            const WireRules& rules = {})
      : Base(dependencies.encode.requests.budgets, dependencies.streams,
             {.unary = method,
              .stream = method,
              .rules = rules,
              .response_of = [](Response& answer) -> Response& { return answer; },
              .model_of =
                  [&dependencies, need](const IncomingCall& call) {
                    return ModelOf(call.context, dependencies.encode.requests.models, need)
                        .value_or(std::string());
                  },
              .start =
                  [&dependencies](RequestCall call, Response& response) {
                    RequestRun::Start(
                        std::make_unique<Run>(dependencies.encode, std::move(call), response));
                  }}) {}
};

}  // namespace attendant::tei
