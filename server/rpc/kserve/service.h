// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "inference/grpc_service.grpc.pb.h"
#include "server/limits/limits.h"
#include "server/requests/encode_run.h"
#include "server/rpc/call/answer_stream.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/raw_service.h"
#include "server/rpc/kserve/models.h"
#include "server/rpc/kserve/shared_memory.h"
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

  // Ends every stream with UNAVAILABLE once all requests that it has read are answered, and new
  // streams at once. Returns when the answers of all earlier calls are written, or at `deadline`.
  void Close(absl::Time deadline);
  // As OpenCalls::CancelSlow, for SlowReaders.
  int CancelSlow(WriteClock::time_point since) {
    return calls_.CancelSlow(since) + streams_.CancelSlow(since);
  }

 private:
  using InferStream = AnswerStream<inference::ModelStreamInferResponse>;

  void ServeServer();  // the methods about the server
  void ServeModels();  // about its models
  void ServeInference();
  void ServeControl();  // loads and unloads
  void ServeSharedMemory();
  void ServeUnsupported();

  // A method that ends when the registry has made its change.
  template <typename Request, typename Response>
  void ServeChange(const char* method,
                   void (ModelRegistry::*change)(const std::string&, ModelRegistry::Done));

  InferStream* StartStream(IncomingCall& call);
  // Starts one request, unary or of a stream.
  void Infer(absl::Time deadline, std::shared_ptr<CallState> state, grpc::ByteBuffer& request,
             inference::ModelInferResponse& response, UnaryCall::Done done);

  const EncodeDependencies& dependencies_;
  const std::string version_;
  const StreamLimits stream_limits_;
  const WireSchema schema_;
  KServeModels models_;
  const std::unique_ptr<SharedMemoryRegions> regions_;  // null: there is no shared memory
  OpenCalls<UnaryCall> calls_;
  OpenCalls<InferStream> streams_;
};

}  // namespace attendant
