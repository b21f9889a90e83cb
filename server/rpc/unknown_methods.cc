// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/unknown_methods.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

constexpr size_t kMaxNameBytes = 128;

// Other calls are of a method that a service keeps.
struct UnknownCall {
  const CallMethod method;
  std::shared_ptr<const CallInfo> info;
};

}  // namespace

grpc::ServerGenericBidiReactor* UnknownMethods::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const absl::string_view name = absl::StripPrefix(context->method(), "/");
  const std::shared_ptr<UnknownCall> call(
      new UnknownCall{.method = {.name = std::string(name.substr(0, kMaxNameBytes)),
                                 .group = MethodGroup::kOpen,
                                 .unknown = true},
                      .info = nullptr});
  CallGate::Entry entry = EnterGate(gate_, call->method, *context);
  call->info = std::move(entry.call);
  const IncomingCall incoming{*context, {call, call->info.get()}, gate_};
  return new EndedCallOf<grpc::ServerGenericBidiReactor>(ended_.calls, budgets_, incoming,
                                                         ToGrpcStatus(entry.status));
}

}  // namespace attendant
