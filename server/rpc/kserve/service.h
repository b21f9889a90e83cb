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
#include "server/rpc/kserve/models.h"

namespace attendant {

// inference.GRPCInferenceService, the KServe v2 protocol as Triton's clients speak it. Every RPC
// answers; an RPC that makes no sense here says UNIMPLEMENTED and why. On gRPC's callback threads;
// thread-safe.
class KServeService final : public inference::GRPCInferenceService::CallbackService {
 public:
  // `dependencies` must outlive the service.
  KServeService(const EncodeDependencies& dependencies, std::string version,
                const StreamLimits& stream_limits = {});

#define ATTENDANT_UNARY(rpc)                                            \
  grpc::ServerUnaryReactor* rpc(grpc::CallbackServerContext* context,   \
                                const inference::rpc##Request* request, \
                                inference::rpc##Response* response) override
  ATTENDANT_UNARY(ServerLive);
  ATTENDANT_UNARY(ServerReady);
  ATTENDANT_UNARY(ModelReady);
  ATTENDANT_UNARY(ServerMetadata);
  ATTENDANT_UNARY(ModelMetadata);
  ATTENDANT_UNARY(ModelConfig);
  ATTENDANT_UNARY(ModelStatistics);
  ATTENDANT_UNARY(ModelInfer);
  ATTENDANT_UNARY(RepositoryIndex);
  ATTENDANT_UNARY(RepositoryModelLoad);
  ATTENDANT_UNARY(RepositoryModelUnload);
  ATTENDANT_UNARY(SystemSharedMemoryStatus);
  ATTENDANT_UNARY(SystemSharedMemoryRegister);
  ATTENDANT_UNARY(SystemSharedMemoryUnregister);
  ATTENDANT_UNARY(CudaSharedMemoryStatus);
  ATTENDANT_UNARY(CudaSharedMemoryRegister);
  ATTENDANT_UNARY(CudaSharedMemoryUnregister);
  ATTENDANT_UNARY(TraceSetting);
  ATTENDANT_UNARY(LogSettings);
#undef ATTENDANT_UNARY

  grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
  ModelStreamInfer(grpc::CallbackServerContext* context) override;

  // Ends every stream with UNAVAILABLE once all requests that it has read are answered, and new
  // streams at once. Returns when the answers of all earlier calls are written, or at `deadline`.
  void Close(absl::Time deadline);

 private:
  using InferStream =
      AnswerStream<inference::ModelInferRequest, inference::ModelStreamInferResponse>;

  // Starts one request, unary or of a stream.
  void Infer(absl::Time deadline, std::shared_ptr<CallState> state,
             const inference::ModelInferRequest& request, inference::ModelInferResponse& response,
             UnaryCall::Done done);

  const EncodeDependencies& dependencies_;
  const std::string version_;
  const StreamLimits stream_limits_;
  KServeModels models_;
  OpenCalls<UnaryCall> calls_;
  OpenCalls<InferStream> streams_;
};

}  // namespace attendant
