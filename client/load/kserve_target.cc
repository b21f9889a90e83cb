// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "client/load/grpc_caller.h"
#include "client/load/kserve_request.h"
#include "client/load/protocols.h"
#include "inference/grpc_service.grpc.pb.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using Service = inference::GRPCInferenceService;
// The request's `id` field carries no meaning here, so the tokens travel beside it.
struct CountedRequest {
  inference::ModelInferRequest proto;
  int64_t sequences = 0;
  int64_t tokens = 0;
};
using InferCaller = GrpcCaller<Service::Stub, CountedRequest, inference::ModelInferResponse>;

absl::StatusOr<KserveModel> DescribeModel(Service::Stub& stub, const TargetSpec& spec) {
  inference::ModelMetadataRequest metadata_request;
  metadata_request.set_name(spec.model);
  inference::ModelMetadataResponse metadata;
  grpc::ClientContext metadata_context;
  SetTimeout(spec.connect.timeout, metadata_context);
  grpc::Status status = stub.ModelMetadata(&metadata_context, metadata_request, &metadata);
  if (!status.ok()) return ToAbslStatus(status);

  inference::ModelConfigRequest config_request;
  config_request.set_name(spec.model);
  inference::ModelConfigResponse config;
  grpc::ClientContext config_context;
  SetTimeout(spec.connect.timeout, config_context);
  status = stub.ModelConfig(&config_context, config_request, &config);
  // The configuration is Triton's addition: other KServe servers do without, and without batching.
  if (!status.ok() && status.error_code() != grpc::StatusCode::UNIMPLEMENTED) {
    return ToAbslStatus(status);
  }
  ATTENDANT_ASSIGN_OR_RETURN(KserveModel model,
                             ToKserveModel(metadata, config.config().max_batch_size()));
  ATTENDANT_RETURN_IF_ERROR(ApplyShapes(spec.shapes, model));
  return model;
}

void Measure(const CountedRequest& request, const inference::ModelInferResponse&,
             CallResult& result) {
  result.sequences = request.sequences;
  if (request.tokens > 0) result.tokens = request.tokens;
}

}  // namespace

absl::StatusOr<Target> MakeKserveTarget(const TargetSpec& spec) {
  if (spec.model.empty()) {
    return absl::FailedPreconditionError("--protocol kserve needs a --model");
  }
  std::vector<std::unique_ptr<Service::Stub>> stubs;
  for (int64_t i = 0; i < spec.connections; ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, MakeChannel(spec.connect));
    stubs.push_back(Service::NewStub(channel));
  }
  ATTENDANT_ASSIGN_OR_RETURN(KserveModel model, DescribeModel(*stubs[0], spec));

  std::vector<CountedRequest> requests;
  for (const Payload& payload : MakePayloads(spec.payload)) {
    ATTENDANT_ASSIGN_OR_RETURN(KserveRequest request, MakeKserveRequest(model, payload));
    requests.push_back({.proto = std::move(request.proto),
                        .sequences = spec.payload.batch,
                        .tokens = request.tokens});
  }
  auto issue = [](Service::Stub& stub, grpc::ClientContext* context, const CountedRequest* request,
                  inference::ModelInferResponse* response, InferCaller::Callback done) {
    stub.async()->ModelInfer(context, &request->proto, response, std::move(done));
  };
  return Target{.model = spec.model,
                .caller = std::make_unique<InferCaller>(std::move(stubs), std::move(requests),
                                                        spec.connect.timeout, issue, Measure)};
}

}  // namespace attendant::client
