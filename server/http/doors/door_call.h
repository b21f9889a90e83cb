// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/doors/json_message.h"
#include "server/http/http_types.h"
#include "server/http/json/json_view.h"
#include "server/metrics/server_metrics.h"
#include "server/models/registry/model_registry.h"
#include "server/requests/encode_run.h"
#include "server/requests/only_model.h"
#include "server/threads/steady_time.h"

// The parts that the JSON protocols share. Each protocol is a file that makes its routes.
namespace attendant {

// The dependencies of the requests of doors. They outlive all requests.
struct DoorDependencies {
  const EncodeDependencies& encode;
  std::string version;
  int64_t max_request_bytes = 0;  // of a body, inflated
};

// The headers of a request: its timeout and priority.
struct HttpCallOptions {
  absl::Time deadline = absl::InfiniteFuture();
  int priority = 0;
};
inline constexpr absl::string_view kTimeoutHeader = "x-request-timeout-ms";
inline constexpr absl::string_view kPriorityHeader = "x-request-priority";
// INVALID_ARGUMENT names the header. `timeout`: the name of the one that has the deadline.
absl::StatusOr<HttpCallOptions> OptionsFromHeaders(const HttpHeaders& header,
                                                   absl::Time head_arrival,
                                                   absl::string_view timeout = kTimeoutHeader);
// The headers of a route that must not come twice: those of OptionsFromHeaders, and one of its own.
std::vector<absl::string_view> SingleHeaders(absl::string_view own);

// NamedOrOnlyModel by a request's headers.
absl::StatusOr<std::string> ModelFromHeaders(const HttpHeaders& header, const ModelRegistry& models,
                                             ModelNeed need);

// Finds the model of a door's request. An error ends the request.
using DoorModel =
    std::function<absl::StatusOr<JsonMessageModel>(const DoorDependencies&, const HttpExchange&)>;
// The field `model`, which a message must have.
DoorModel FieldModel();
// The field `model`, else the one that NamedOrOnlyModel says. `beside`: as in JsonMessageModel.
DoorModel FieldOrOnlyModel(ModelNeed need, absl::string_view beside = {});
// The one that NamedOrOnlyModel says: messages name none.
DoorModel HeaderOrOnlyModel(ModelNeed need);

// The bytes of floats as JSON, beyond their bytes in `output`.
int64_t FloatTextBytes(const EncodeOutput& output);

// An encode request of a door. Derived classes translate: FromJson and ToJson.
class DoorRun : public EncodeRun {
 public:
  DoorRun(const EncodeDependencies& dependencies, RequestCall call, int priority,
          HttpResponse& response)
      : EncodeRun(dependencies, std::move(call)), priority_(priority), response_(response) {}

 protected:
  virtual absl::StatusOr<EncodeInput> FromJson(JsonView request) = 0;
  virtual void ToJson(EncodeOutput& output, std::string& json) = 0;

  // False if gzip does not make the answer smaller, so that compression is not tried.
  virtual bool compressible() const { return true; }
  int64_t TextBytes(const EncodeOutput& output) const override { return FloatTextBytes(output); }

 private:
  absl::StatusOr<EncodeInput> FromMessage() final;
  void ToMessage(EncodeOutput& output) final;
  absl::StatusOr<std::shared_ptr<EncoderModel>> FindModel() final;

  const int priority_;
  HttpResponse& response_;
};

// The request as the runner takes it; ends the exchange when it is done.
RequestCall MakeRequestCall(Method method, std::unique_ptr<RequestMessage> message,
                            absl::Time deadline, std::unique_ptr<HttpExchange> exchange);

// Ends an exchange that no run ends: counts and logs it.
void EndSmall(const DoorDependencies& dependencies, std::unique_ptr<HttpExchange> exchange,
              const absl::Status& status);

// The answer of a failure: {"KEY":MESSAGE}, with `more` fields before the brace, as in `,"code":5`.
HttpResponse JsonFailure(const HttpFailure& failure, absl::string_view key,
                         absl::string_view more = {});

// Makes `response` one of JSON, and returns its body. `compressible`: gzip makes it smaller.
std::string& StartJson(HttpResponse& response, bool compressible = true);

// The values' bytes as f32, in base64 and quotes.
void AppendJsonBase64(const std::vector<float>& values, std::string& json);

// Starts a run of type Run, which is made of dependencies, call, priority and response.
template <typename Run>
void StartDoorRun(const DoorDependencies& dependencies, Method method, const DoorModel& find_model,
                  std::unique_ptr<HttpExchange> exchange) {
  absl::StatusOr<JsonMessageModel> model = find_model(dependencies, *exchange);
  if (!model.ok()) return EndSmall(dependencies, std::move(exchange), model.status());
  const absl::StatusOr<HttpCallOptions> options =
      OptionsFromHeaders(exchange->header, exchange->head_arrival);
  if (!options.ok()) return EndSmall(dependencies, std::move(exchange), options.status());
  HttpResponse& response = exchange->response;
  auto message = std::make_unique<JsonMessage>(
      HttpBody{std::move(exchange->body), exchange->gzip, dependencies.max_request_bytes},
      *std::move(model));
  RequestCall call =
      MakeRequestCall(method, std::move(message), options->deadline, std::move(exchange));
  RequestRun::Start(
      std::make_unique<Run>(dependencies.encode, std::move(call), options->priority, response));
}

// The route of a door whose requests runs of type Run answer: POST `path`.
template <typename Run>
HttpRoute DoorRoute(const DoorDependencies& dependencies, std::string path, Method method,
                    DoorModel find_model, HttpErrorShape error, HttpRouteDoc doc) {
  HttpRoute route = MakeHttpRoute(
      "POST", std::move(path), MethodGroup::kInfer, error,
      [&dependencies, method,
       find_model = std::move(find_model)](std::unique_ptr<HttpExchange> exchange) {
        StartDoorRun<Run>(dependencies, method, find_model, std::move(exchange));
      },
      std::move(doc));
  route.single_headers = SingleHeaders(kModelHeader);
  return route;
}

// A handler that fills the response at once.
using SmallHandler = std::function<absl::Status(const HttpExchange& exchange, std::string& json)>;
std::function<void(std::unique_ptr<HttpExchange>)> Small(const DoorDependencies& dependencies,
                                                         SmallHandler handler);

}  // namespace attendant
