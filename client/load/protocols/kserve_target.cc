// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "client/answer.h"
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
  metadata_request.set_version(VersionField(spec));
  inference::ModelMetadataResponse metadata;
  grpc::ClientContext metadata_context;
  SetTimeout(spec.connect.timeout, metadata_context);
  grpc::Status status = stub.ModelMetadata(&metadata_context, metadata_request, &metadata);
  if (!status.ok()) return ToAbslStatus(status);

  inference::ModelConfigRequest config_request;
  config_request.set_name(spec.model);
  config_request.set_version(VersionField(spec));
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

// That each output has. Without a batch dimension, the outputs do not tell; an answer without any
// is about none.
std::optional<int64_t> CountSequences(const inference::ModelInferResponse& response, bool batched) {
  if (response.outputs().empty()) return 0;
  if (!batched) return std::nullopt;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const auto& output : response.outputs()) {
    fewest = std::min<int64_t>(fewest, output.shape().empty() ? 0 : output.shape(0));
  }
  return fewest;
}

bool ReadInfer(bool batched, grpc::ByteBuffer& bytes, GrpcAnswer& answer) {
  static thread_local inference::ModelInferResponse response;
  if (!ParseAnswer(bytes, response)) return false;
  answer.sequences = CountSequences(response, batched);
  return true;
}

bool ReadStreamInfer(bool batched, grpc::ByteBuffer& bytes, GrpcAnswer& answer) {
  static thread_local inference::ModelStreamInferResponse response;
  if (!ParseAnswer(bytes, response)) return false;
  answer.id = response.infer_response().id();  // of an error, some servers do not tell it
  answer.sequences = CountSequences(response.infer_response(), batched);
  if (!response.error_message().empty()) {
    answer.result = {.code = grpc::StatusCode::UNKNOWN, .message = response.error_message()};
  }
  return true;
}

}  // namespace

absl::StatusOr<Target> MakeKserveTarget(const TargetSpec& spec) {
  GrpcLoad load{.channels = {},
                .requests = {},
                .unary = {.path = "/inference.GRPCInferenceService/ModelInfer", .read = {}},
                .stream = {.path = "/inference.GRPCInferenceService/ModelStreamInfer",
                           .read = {},
                           .id_field = inference::ModelInferRequest::kIdFieldNumber}};
  ATTENDANT_ASSIGN_OR_RETURN(load.channels, MakeChannels(spec));
  const std::unique_ptr<Service::Stub> stub = Service::NewStub(load.channels[0]);
  ATTENDANT_ASSIGN_OR_RETURN(const KserveModel model, DescribeModel(*stub, spec));
  const bool batched = model.max_batch_size > 0;
  load.unary.read = std::bind_front(ReadInfer, batched);
  load.stream.read = std::bind_front(ReadStreamInfer, batched);
  for (const Payload& payload : MakePayloads(spec.payload)) {
    ATTENDANT_ASSIGN_OR_RETURN(KserveRequest request, MakeKserveRequest(model, payload));
    request.proto.set_model_version(VersionField(spec));
    load.requests.push_back(ToGrpcRequest(request.proto, NumSequences(payload), request.tokens));
  }
  return Target{.model = spec.model,
                .caller = MakeGrpcCaller(spec, std::move(load)),
                .sends_words = model.takes_texts()};
}

}  // namespace attendant::client
