// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "inference/grpc_service.grpc.pb.h"
#include "server/batching/batcher.h"
#include "server/requests/encode_run.h"
#include "server/rpc/call/answer_stream.h"
#include "server/rpc/call/open_calls.h"
#include "server/rpc/call/unary_call.h"
#include "server/rpc/kserve/infer.h"
#include "server/rpc/kserve/models.h"

namespace attendant {

// inference.GRPCInferenceService, the KServe v2 protocol as Triton's clients speak it. Every call
// answers; those that make no sense here say UNIMPLEMENTED and why. On gRPC's callback threads;
// thread-safe.
class KServeService final : public inference::GRPCInferenceService::CallbackService {
 public:
  // `pipeline` must outlive the service. Large requests are read on `executor`.
  KServeService(EncodePipeline& pipeline, std::string version, Executor executor,
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

  // Ends every stream with UNAVAILABLE once all that it has read is answered, new ones at once. The
  // answers of all calls that began before have been written when it returns, or `deadline` is
  // over.
  void Close(absl::Time deadline);

 private:
  using InferStream =
      AnswerStream<inference::ModelInferRequest, inference::ModelStreamInferResponse>;

  EncodePipeline& pipeline_;
  const std::string version_;
  const StreamLimits stream_limits_;
  KServeModels models_;
  KServeInference inference_;
  OpenCalls<UnaryCall> calls_;
  OpenCalls<InferStream> streams_;
};

}  // namespace attendant
