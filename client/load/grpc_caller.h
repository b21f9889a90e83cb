// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/channel.h"
#include "client/load/caller.h"

namespace attendant::client {

// Sends ready-made requests of one unary method with the callback API of gRPC.
template <typename Stub, typename Request, typename Response>
class GrpcCaller : public Caller {
 public:
  using Callback = std::function<void(grpc::Status)>;
  using Issue =
      std::function<void(Stub&, grpc::ClientContext*, const Request*, Response*, Callback)>;
  // Fills in the fields that an answer tells.
  using Measure = std::function<void(const Request&, const Response&, CallResult&)>;

  // `stubs` are the connections. REQUIRES: neither list is empty.
  GrpcCaller(std::vector<std::unique_ptr<Stub>> stubs, std::vector<Request> requests,
             absl::Duration timeout, Issue issue, Measure measure)
      : stubs_(std::move(stubs)),
        requests_(std::move(requests)),
        timeout_(timeout),
        issue_(std::move(issue)),
        measure_(std::move(measure)) {}

  void Start(int64_t index, int64_t connection, Done done) override {
    const Request& request = requests_[static_cast<size_t>(index) % requests_.size()];
    Stub& stub = *stubs_[static_cast<size_t>(connection) % stubs_.size()];
    auto* call = new Call(request, std::move(done));
    SetTimeout(timeout_, call->context);
    calls_.Add(&call->context);
    issue_(stub, &call->context, &request, &call->response,
           [this, call](const grpc::Status& status) { Finish(call, status); });
  }

  void CancelAll() override { calls_.Cancel(); }

 private:
  struct Call {
    Call(const Request& call_request, Done call_done)
        : request(call_request), done(std::move(call_done)) {}
    const Request& request;
    Done done;
    grpc::ClientContext context;
    Response response;
  };

  void Finish(Call* call, const grpc::Status& status) {
    CallResult result{.code = status.error_code(), .message = status.error_message()};
    if (status.ok()) measure_(call->request, call->response, result);
    call->done(result);
    calls_.Remove(&call->context);
    delete call;
  }

  const std::vector<std::unique_ptr<Stub>> stubs_;
  const std::vector<Request> requests_;
  const absl::Duration timeout_;
  const Issue issue_;
  const Measure measure_;
  OutstandingCalls calls_;  // destroyed first
};

}  // namespace attendant::client
