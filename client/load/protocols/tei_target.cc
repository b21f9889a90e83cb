// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/answer.h"
#include "client/channel.h"
#include "client/load/protocols/grpc_load.h"
#include "client/load/protocols/protocols.h"
#include "kernels/core/status_macros.h"
#include "tei/v1/tei.grpc.pb.h"

namespace attendant::client {
namespace {

constexpr const char* kModelKey = "x-model";

absl::StatusOr<tei::v1::InfoResponse> AskInfo(const std::shared_ptr<grpc::Channel>& channel,
                                              const TargetSpec& spec) {
  tei::v1::InfoResponse info;
  grpc::ClientContext context;
  SetTimeout(spec.connect.timeout, context);
  if (!spec.model.empty()) context.AddMetadata(kModelKey, spec.model);
  const grpc::Status status = tei::v1::Info::NewStub(channel)->Info(&context, {}, &info);
  if (!status.ok()) return ToAbslStatus(status);
  return info;
}

bool ReadEmbed(grpc::ByteBuffer& bytes, GrpcAnswer& answer) {
  static thread_local tei::v1::EmbedResponse response;
  if (!ParseAnswer(bytes, response)) return false;
  const tei::v1::Metadata& metadata = response.metadata();
  const auto us = [](uint64_t ns) { return static_cast<int64_t>(ns / 1000); };
  answer.sequences = response.embeddings().empty() ? 0 : 1;
  answer.result.tokens = metadata.compute_tokens();
  answer.result.timings = {.tokenize_us = us(metadata.tokenization_time_ns()),
                           .queue_us = us(metadata.queue_time_ns()),
                           .compute_us = us(metadata.inference_time_ns()),
                           .total_us = us(metadata.total_time_ns())};
  return true;
}

GrpcRequest MakeTeiRequest(const Payload& payload) {
  tei::v1::EmbedRequest request;
  request.set_inputs(TextsOf(payload).at(0));
  request.set_truncate(true);
  return ToGrpcRequest(request, 1);
}

}  // namespace

absl::StatusOr<Target> MakeTeiTarget(const TargetSpec& spec) {
  if (spec.payload.batch != 1) {
    return absl::FailedPreconditionError("--batch: a request of tei.v1 is one text");
  }
  GrpcLoad load{.channels = {},
                .requests = {},
                .unary = {.path = "/tei.v1.Embed/Embed", .read = ReadEmbed},
                .stream = {.path = "/tei.v1.Embed/EmbedStream", .read = ReadEmbed}};
  if (!spec.model.empty()) load.metadata.emplace_back(kModelKey, spec.model);
  ATTENDANT_ASSIGN_OR_RETURN(load.channels, MakeChannels(spec));
  ATTENDANT_ASSIGN_OR_RETURN(const tei::v1::InfoResponse info, AskInfo(load.channels[0], spec));
  PayloadSpec payloads = spec.payload;
  payloads.lengths.Limit(std::max<int64_t>(1, info.max_input_length()));
  for (const Payload& payload : MakePayloads(payloads)) {
    if (const int64_t sequences = NumSequences(payload); sequences != 1) {
      return absl::FailedPreconditionError(absl::StrCat(
          "--replay: a request of tei.v1 is one text; the trace has one of ", sequences));
    }
    load.requests.push_back(MakeTeiRequest(payload));
  }
  return Target{.model = info.model_id(),
                .caller = MakeGrpcCaller(spec, std::move(load)),
                .sends_words = true};
}

}  // namespace attendant::client
