// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/access/call_gate.h"
#include "server/http/connection/body_buffer.h"
#include "server/http/connection/request_head.h"
#include "server/http/http_routes.h"
#include "server/http/http_types.h"
#include "server/requests/call_state.h"
#include "server/requests/request_run.h"
#include "server/threads/steady_time.h"

namespace attendant {

// A request of a route on its connection: its head has come, its body comes. It is counted and
// logged once: when it is refused, when it is given up, or by the run that Take hands it to.
class RouteCall {
 public:
  // Takes the call through the gate. REQUIRES: `match` has a route. `requests` must outlive this.
  RouteCall(const RequestDependencies& requests, HttpRoutes::Match match, RequestHead head,
            const std::string& peer);

  const HttpRoute& route() const { return *match_.route; }
  CallState& state() { return *state_; }
  bool waits_for_continue() const { return head_->WaitsForContinue(); }

  // The answer where the gate refuses the call, or the head says that its body cannot be read.
  // `length`: of the body, where the client has told it.
  std::optional<HttpResponse> RefuseHead(std::optional<uint64_t> length, int64_t max_bytes);
  HttpResponse Refuse(const HttpFailure& failure);
  // No answer can be sent. Does nothing once the request is refused or taken.
  void GiveUp(absl::StatusCode code);

  BodyBuffer& body() { return body_; }
  // The request with its body, which has come.
  std::unique_ptr<HttpExchange> Take(absl::AnyInvocable<void(HttpResponse)> send);

 private:
  void End(absl::StatusCode code);

  const RequestDependencies& requests_;
  HttpRoutes::Match match_;
  const std::shared_ptr<const RequestHead> head_;
  const absl::Time head_arrival_ = SteadyNow();
  absl::Status entered_;
  std::shared_ptr<CallState> state_;
  BodyBuffer body_;
  bool ended_ = false;  // it is counted and logged, or will be
};

}  // namespace attendant
