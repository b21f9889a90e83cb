// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "client/channel.h"
#include "client/load/protocols/grpc_load.h"
#include "client/load/protocols/kserve_request.h"
#include "client/load/protocols/protocols.h"
#include "inference/grpc_service.grpc.pb.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using Service = inference::GRPCInferenceService;

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
  return DescribeKserveModel(metadata, config.config(), spec.shapes);
}

// Nothing in it is of use here, so it is not even parsed.
bool ReadInfer(grpc::ByteBuffer&, GrpcAnswer&) { return true; }

bool ReadStreamInfer(grpc::ByteBuffer& bytes, GrpcAnswer& answer) {
  static thread_local inference::ModelStreamInferResponse response;
  if (!ParseAnswer(bytes, response)) return false;
  answer.id = response.infer_response().id();  // of an error, some servers do not tell it
  if (!response.error_message().empty()) {
    answer.result = {.code = grpc::StatusCode::UNKNOWN, .message = response.error_message()};
  }
  return true;
}

}  // namespace

absl::StatusOr<Target> MakeKserveTarget(const TargetSpec& spec) {
  GrpcLoad load{.channels = {},
                .requests = {},
                .unary = {.path = "/inference.GRPCInferenceService/ModelInfer", .read = ReadInfer},
                .stream = {.path = "/inference.GRPCInferenceService/ModelStreamInfer",
                           .read = ReadStreamInfer,
                           .id_field = inference::ModelInferRequest::kIdFieldNumber}};
  ATTENDANT_ASSIGN_OR_RETURN(load.channels, MakeChannels(spec));
  const std::unique_ptr<Service::Stub> stub = Service::NewStub(load.channels[0]);
  ATTENDANT_ASSIGN_OR_RETURN(const KserveModel model, DescribeModel(*stub, spec));
  for (const Payload& payload : MakePayloads(spec.payload)) {
    ATTENDANT_ASSIGN_OR_RETURN(const KserveRequest request, MakeKserveRequest(model, payload));
    load.requests.push_back(ToGrpcRequest(request.proto, spec.payload.batch, request.tokens));
  }
  return Target{.model = spec.model, .caller = MakeGrpcCaller(spec, std::move(load))};
}

}  // namespace attendant::client
