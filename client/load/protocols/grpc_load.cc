// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/grpc_load.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/channel.h"
#include "client/load/protocols/stream_caller.h"
#include "client/load/protocols/unary_caller.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {

CallResult ResultOf(const GrpcRequest& request, GrpcAnswer answer) {
  CallResult result = std::move(answer.result);
  if (result.code != grpc::StatusCode::OK) return result;
  if (const int64_t told = answer.sequences.value_or(request.sequences);
      told != request.sequences) {
    return OtherNumber(told, request.sequences);
  }
  result.sequences = request.sequences;
  if (request.tokens > 0) result.tokens = request.tokens;
  return result;
}

std::string VersionField(const TargetSpec& spec) {
  return spec.model_version == 0 ? "" : absl::StrCat(spec.model_version);
}

absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> MakeChannels(const TargetSpec& spec) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int64_t i = 0; i < spec.connections; ++i) {
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = MakeChannel(spec.connect);
    if (!channel.ok()) return absl::FailedPreconditionError(channel.status().message());
    channels.push_back(*std::move(channel));
  }
  return channels;
}

std::unique_ptr<Caller> MakeGrpcCaller(const TargetSpec& spec, GrpcLoad load) {
  if (spec.streaming) return std::make_unique<StreamCaller>(std::move(load), spec.connect.timeout);
  return std::make_unique<UnaryCaller>(std::move(load), spec.connect.timeout);
}

}  // namespace attendant::client
