// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/access/call_gate.h"
#include "server/requests/call_state.h"

namespace attendant {

struct HttpResponse {
  int code = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
  bool compressible = false;  // gzip saves bytes: text, no base64, no tensors
};

// Why a request is not answered. The code says what `status` alone cannot: 413, 415.
struct HttpFailure {
  int code = 500;
  absl::Status status;
};
// The failure for a status, with its HTTP code: 400 for INVALID_ARGUMENT, 404 for NOT_FOUND, and so
// on.
HttpFailure FailureOf(const absl::Status& status);

// The value of a header, by its name in lower case. Nothing unless it was sent exactly once.
using HttpHeaders = std::function<std::optional<absl::string_view>(absl::string_view name)>;

// A function that writes an error in the form of a protocol.
using HttpErrorShape = HttpResponse (*)(const HttpFailure& failure);

struct HttpRoute;

// One request of a route, from its connection: what came, and the way back. Who holds it ends it
// exactly once, from any thread.
struct HttpExchange {
  const HttpRoute& route;               // outlives the exchange
  HttpHeaders header;                   // until the exchange ends
  std::vector<std::string> parameters;  // the values of each {word} of the route's path
  std::string body;
  // Steady times: the arrival of the head, from which deadlines count, and of the whole request.
  absl::Time head_arrival, arrival;
  bool gzip = false;                 // the body is compressed
  bool head_only = false;            // HEAD: the answer's body is not sent
  std::shared_ptr<CallState> state;  // holds the request's memory until the answer is written
  HttpResponse response = {};        // the answer when the request ends well
  absl::AnyInvocable<void(HttpResponse)> send;
};

// The error in the route's shape, with the time after which the client may try again.
HttpResponse ErrorResponse(const HttpRoute& route, const HttpFailure& failure);

// True if the client accepts gzip, by its Accept-Encoding.
bool TakesGzip(const HttpHeaders& header);

// Compresses the response where that saves bytes and its client takes gzip. Called once, when the
// response is complete.
void Compress(bool takes_gzip, HttpResponse& response);

// Compresses the exchange's response. Returns the bytes of its body that are sent.
int64_t CompressAnswer(HttpExchange& exchange);

// Ends an exchange: with its response as it is, or with the error in the route's shape.
void EndExchange(std::unique_ptr<HttpExchange> exchange, const absl::Status& status);

// A route in the OpenAPI document: schemas of request and answer as JSON, empty for none. Routes
// without a summary are not in the document.
struct HttpRouteDoc {
  std::string summary = {};
  std::string request = {};
  std::string response = {};
};

// A method and path that a protocol serves.
struct HttpRoute {
  std::string method;  // "POST"; of "GET" the route answers HEAD too
  std::string path;    // "/v2/models/{model}/infer"
  CallMethod call;     // named "POST /v2/models/{model}/infer"
  HttpErrorShape error;
  std::function<void(std::unique_ptr<HttpExchange>)> handler;  // on the executor for small requests
  HttpRouteDoc doc;
  // Headers that say how to answer a request, in lower case: a request of any route has one of each
  // at most.
  std::vector<absl::string_view> single_headers = {};
};

// A route whose call is named after method and path.
HttpRoute MakeHttpRoute(std::string method, std::string path, MethodGroup group,
                        HttpErrorShape error,
                        std::function<void(std::unique_ptr<HttpExchange>)> handler,
                        HttpRouteDoc doc);

}  // namespace attendant
