// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "inference/grpc_service.grpc.pb.h"
#include "server/limits/limits.h"
#include "server/protocols/kserve/models.h"
#include "server/protocols/kserve/shared_memory.h"
#include "server/requests/encode_run.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/raw_service.h"
#include "server/rpc/call/request_method.h"
#include "server/rpc/scan/wire_schema.h"

namespace attendant {

// Limits of a ModelInferRequest.
WireRules InferRules(const EncodeLimits& limits);

// inference.GRPCInferenceService, the KServe v2 protocol as Triton's clients speak it. Every RPC
// answers; an RPC that makes no sense here says UNIMPLEMENTED and why. On gRPC's callback threads;
// thread-safe.
class KServeService final : public RawService<inference::GRPCInferenceService> {
 public:
  // `dependencies` must outlive the service. `shared_memory`: whether clients may register system
  // shared memory.
  KServeService(const EncodeDependencies& dependencies, std::string version,
                const StreamLimits& stream_limits = {}, bool shared_memory = false);

 private:
  void ServeServer();   // the methods about the server
  void ServeModels();   // about its models
  void ServeControl();  // loads and unloads
  void ServeSharedMemory();
  void ServeUnsupported();

  // A method that ends when the registry has made its change.
  template <typename Request, typename Response>
  void ServeChange(const char* method,
                   void (ModelRegistry::*change)(const std::string&, ModelRegistry::Done));

  const EncodeDependencies& dependencies_;
  const std::string version_;
  KServeModels models_;
  const std::unique_ptr<SharedMemoryRegions> regions_;  // null: there is no shared memory
  RequestMethod<inference::ModelInferRequest, inference::ModelInferResponse,
                inference::ModelStreamInferResponse>
      infer_;
};

}  // namespace attendant
