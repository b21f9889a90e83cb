// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>
#include <vector>

#include "server/flags.h"
#include "server/protocols/attention/attend_run.h"
#include "server/requests/encode_run.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/raw_service.h"
#include "server/rpc/health_service.h"
#include "server/rpc/tei/method.h"
#include "server/rpc/unknown_methods.h"

namespace attendant {

// The gRPC services of the server. Those that the flags switch off are not among them: their calls
// get UNIMPLEMENTED.
class GrpcServices {
 public:
  // The references outlive the services.
  GrpcServices(const ServerFlags& flags, const EncodeDependencies& encode,
               const AttendDependencies& attend, HealthService& health);

  const std::vector<grpc::Service*>& services() const { return services_; }
  // Handles the calls of all methods that no service has.
  UnknownMethods& unknown_methods() { return unknown_methods_; }
  // RawService::open_methods of all, and that of the unknown methods.
  const std::vector<OpenMethod*>& open_methods() const { return open_methods_; }

 private:
  template <typename Proto>
  void Serve(RawService<Proto>& service);
  template <typename Service>
  void Serve(std::unique_ptr<Service> service);

  const tei::Dependencies tei_;
  UnknownMethods unknown_methods_;
  std::vector<std::unique_ptr<grpc::Service>> owned_;
  std::vector<grpc::Service*> services_;
  std::vector<std::string> names_;  // for reflection
  std::vector<OpenMethod*> open_methods_;
};

}  // namespace attendant
