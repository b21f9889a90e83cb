// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/route_call.h"

#include "server/http/connection/http_message.h"
#include "server/metrics/server_metrics.h"

namespace attendant {

RouteCall::RouteCall(const RequestDependencies& requests, HttpRoutes::Match match, RequestHead head,
                     const std::string& peer)
    : requests_(requests),
      match_(std::move(match)),
      head_(std::make_shared<const RequestHead>(std::move(head))) {
  const auto header = [this](absl::string_view name) { return head_->Find(name); };
  CallGate::Entry entry =
      requests_.gate.Enter({.method = route().call, .peer = peer, .header = header});
  entered_ = std::move(entry.status);
  ended_ = !entered_.ok();
  state_ =
      std::make_shared<CallState>(std::move(entry.call), requests_.budgets.ForConnection(peer));
}

std::optional<HttpResponse> RouteCall::RefuseHead(std::optional<uint64_t> length,
                                                  int64_t max_bytes) {
  if (!entered_.ok()) return ErrorResponse(route(), FailureOf(entered_));
  std::optional<HttpFailure> unfit = head_->UnfitTransfer();
  if (!unfit) unfit = head_->RepeatedHeader(match_.single_headers);
  if (!unfit) {
    unfit = UnfitBody(head_->Find("content-encoding").value_or(""), length, max_bytes);
  }
  if (unfit) return Refuse(*unfit);
  return std::nullopt;
}

HttpResponse RouteCall::Refuse(const HttpFailure& failure) {
  if (absl::IsInvalidArgument(failure.status)) requests_.metrics.CountRefused(Refusal::kMessage);
  End(failure.status.code());
  return ErrorResponse(route(), failure);
}

void RouteCall::GiveUp(absl::StatusCode code) {
  if (!ended_) End(code);
}

void RouteCall::End(absl::StatusCode code) {
  ended_ = true;
  requests_.gate.Ended(state_->call(), {.code = code,
                                        .request_bytes = static_cast<int64_t>(body_.received()),
                                        .total = SteadyNow() - head_arrival_});
}

std::unique_ptr<HttpExchange> RouteCall::Take(absl::AnyInvocable<void(HttpResponse)> send) {
  ended_ = true;
  BodyBuffer::Body body = body_.Take();
  state_->HoldRequest(std::move(body.memory));
  return std::make_unique<HttpExchange>(
      HttpExchange{.route = route(),
                   .header = [head = head_](absl::string_view name) { return head->Find(name); },
                   .parameters = std::move(match_.parameters),
                   .body = std::move(body.text),
                   .head_arrival = head_arrival_,
                   .arrival = SteadyNow(),
                   .gzip = IsGzip(head_->Find("content-encoding").value_or("")),
                   .head_only = head_->method() == "HEAD",
                   .state = state_,
                   .response = {},
                   .send = std::move(send)});
}

}  // namespace attendant
