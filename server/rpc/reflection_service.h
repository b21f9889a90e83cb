// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

namespace attendant {

// grpc.reflection.v1alpha.ServerReflection over the messages of this program. gRPC's own service is
// not used: every one of its streams holds a thread, and whatever links it cannot switch it off.
// Thread-safe.
class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::CallbackService {
 public:
  // `services` are the full names of those that the server has.
  explicit ReflectionService(std::vector<std::string> services) : services_(std::move(services)) {}

  grpc::ServerBidiReactor<grpc::reflection::v1alpha::ServerReflectionRequest,
                          grpc::reflection::v1alpha::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext* context) override;

 private:
  class Stream;

  const std::vector<std::string> services_;
};

}  // namespace attendant
