// SPDX-License-Identifier: Apache-2.0
#include "server/http/attendant/routes.h"

#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "attendant/v1/attention.pb.h"
#include "attendant/v1/encoder.pb.h"
#include "server/http/attendant/connect_error.h"
#include "server/http/attendant/json_request.h"
#include "server/http/proto_json/proto_schema.h"
#include "server/http/proto_json/proto_writer.h"
#include "server/protocols/encoder/encoder_run.h"

namespace attendant {
namespace {

// A request from its arrival until its answer is sent.
template <typename Response>
struct Conversation {
  std::unique_ptr<HttpExchange> exchange;
  Response response;
};

void WriteJson(const google::protobuf::Message& message, HttpResponse& response) {
  const size_t bytes = message.ByteSizeLong();
  response.content_type = "application/json";
  response.body.reserve(bytes + bytes / 2);  // base64 takes four bytes for three
  AppendProtoJson(message, response.body);
}

constexpr absl::string_view kConnectTimeoutHeader = "connect-timeout-ms";

// Connect's header for a deadline goes before the one of this port.
absl::string_view TimeoutHeader(const HttpHeaders& header) {
  return header(kConnectTimeoutHeader).has_value() ? kConnectTimeoutHeader : kTimeoutHeader;
}

// `start` takes the call and the response, which outlives the request.
template <typename Request, typename Response, typename Start>
void StartRequest(const DoorDependencies& dependencies, Method method,
                  std::unique_ptr<HttpExchange> exchange, Start start) {
  const absl::StatusOr<HttpCallOptions> options =
      OptionsFromHeaders(exchange->header, exchange->head_arrival, TimeoutHeader(exchange->header));
  if (!options.ok()) return EndSmall(dependencies, std::move(exchange), options.status());
  auto conversation = std::make_unique<Conversation<Response>>();
  conversation->exchange = std::move(exchange);
  HttpExchange& in = *conversation->exchange;
  Response& response = conversation->response;
  RequestCall call{
      .method = method,
      .message = std::make_unique<JsonRequest<Request>>(
          HttpBody{std::move(in.body), in.gzip, dependencies.max_request_bytes}, options->priority),
      .arrival = in.arrival,
      .deadline = options->deadline,
      .state = in.state,
      .done = {}};
  call.write = [&response, &in] {
    WriteJson(response, in.response);
    return CompressAnswer(in);
  };
  call.done = [conversation = std::move(conversation)](const absl::Status& status) {
    EndExchange(std::move(conversation->exchange), status);
  };
  start(std::move(call), response);
}

template <typename Request, typename Response>
HttpRoute MakeRoute(absl::string_view service, absl::string_view name, MethodGroup group,
                    std::function<void(std::unique_ptr<HttpExchange>)> handler,
                    std::string summary) {
  HttpRoute route = MakeHttpRoute("POST", absl::StrCat("/", service, "/", name), group,
                                  ConnectError, std::move(handler),
                                  {std::move(summary), ProtoJsonSchema(*Request::descriptor()),
                                   ProtoJsonSchema(*Response::descriptor())});
  route.single_headers = SingleHeaders(kConnectTimeoutHeader);
  return route;
}

// A method whose request says nothing: the body is not read.
template <typename Response>
std::function<void(std::unique_ptr<HttpExchange>)> Lister(const DoorDependencies& dependencies,
                                                          std::function<void(Response&)> fill) {
  return Small(dependencies,
               [fill = std::move(fill)](const HttpExchange& /*request*/, std::string& json) {
                 Response response;
                 fill(response);
                 AppendProtoJson(response, json);
                 return absl::OkStatus();
               });
}

void AddEncoder(const DoorDependencies& dependencies, std::vector<HttpRoute>& routes) {
  constexpr char kService[] = "attendant.v1.Encoder";
  routes.push_back(MakeRoute<v1::EncodeRequest, v1::EncodeResponse>(
      kService, "Encode", MethodGroup::kInfer,
      [&dependencies](std::unique_ptr<HttpExchange> exchange) {
        StartRequest<v1::EncodeRequest, v1::EncodeResponse>(
            dependencies, Method::kHttpEncode, std::move(exchange),
            [&dependencies](RequestCall call, v1::EncodeResponse& response) {
              StartEncode(dependencies.encode, std::move(call), response);
            });
      },
      "attendant.v1: embeddings, hidden states, scores, attention weights"));
  routes.push_back(MakeRoute<v1::ListModelsRequest, v1::ListModelsResponse>(
      kService, "ListModels", MethodGroup::kRead,
      Lister<v1::ListModelsResponse>(
          dependencies,
          [&models = dependencies.encode.requests.models](v1::ListModelsResponse& response) {
            DescribeEncoders(models, response);
          }),
      "attendant.v1: models and their states"));
}

void AddAttention(const DoorDependencies& dependencies, const AttendDependencies& attention,
                  std::vector<HttpRoute>& routes) {
  constexpr char kService[] = "attendant.v1.Attention";
  routes.push_back(MakeRoute<v1::AttendRequest, v1::AttendResponse>(
      kService, "Attend", MethodGroup::kInfer,
      [&dependencies, &attention](std::unique_ptr<HttpExchange> exchange) {
        StartRequest<v1::AttendRequest, v1::AttendResponse>(
            dependencies, Method::kHttpAttend, std::move(exchange),
            [&attention](RequestCall call, v1::AttendResponse& response) {
              StartAttend(attention, std::move(call), response);
            });
      },
      "attendant.v1: attention on tensors"));
  routes.push_back(MakeRoute<v1::ListAttentionRequest, v1::ListAttentionResponse>(
      kService, "ListAttention", MethodGroup::kRead,
      Lister<v1::ListAttentionResponse>(dependencies,
                                        [&attention](v1::ListAttentionResponse& response) {
                                          DescribeAttention(attention, response);
                                        }),
      "attendant.v1: kinds of attention, modules, limits"));
}

}  // namespace

std::vector<HttpRoute> AttendantRoutes(const DoorDependencies& dependencies,
                                       const AttendDependencies* attention) {
  std::vector<HttpRoute> routes;
  AddEncoder(dependencies, routes);
  if (attention != nullptr) AddAttention(dependencies, *attention, routes);
  return routes;
}

}  // namespace attendant
