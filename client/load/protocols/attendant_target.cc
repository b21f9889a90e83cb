// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder.grpc.pb.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/load/protocols/grpc_load.h"
#include "client/load/protocols/protocols.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr int kIdField = v1::EncodeRequest::kIdFieldNumber;

absl::StatusOr<ModelInfo> FindModel(const TargetSpec& spec) {
  absl::StatusOr<std::unique_ptr<Client>> connected = Client::Connect(spec.connect);
  if (!connected.ok()) return absl::FailedPreconditionError(connected.status().message());
  Client* client = connected->get();
  std::string name = spec.model;
  if (name.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(name, client->OnlyModel());
  }
  ATTENDANT_ASSIGN_OR_RETURN(ModelInfo model, client->Describe(name, spec.model_version));
  if (model.state == "idle") {
    // A request loads it, so that no request of the load waits for that. What it answers does not
    // matter.
    static_cast<void>(client->Encode({.model = name,
                                      .model_version = spec.model_version,
                                      .sequences = {TokenIds{.token_ids = {0}}},
                                      .last_hidden_state = true}));
    ATTENDANT_ASSIGN_OR_RETURN(model, client->Describe(name, spec.model_version));
  }
  if (model.state == "ready") return model;
  return absl::UnavailableError(
      absl::StrCat("version ", model.version, " of the model ", name, " is ", model.state));
}

v1::EncodeRequest MakeRequest(const std::string& model, const TargetSpec& spec,
                              const Payload& payload) {
  v1::EncodeRequest request;
  request.set_model(model);
  request.set_model_version(VersionField(spec));
  if (spec.hidden) {
    request.mutable_outputs()->set_last_hidden_state(true);
  } else {
    request.mutable_outputs()->mutable_pooled();
  }
  v1::Sequences& sequences = *request.mutable_sequences();
  for (const std::string& text : payload.texts) sequences.add_sequences()->set_text(text);
  for (const std::vector<int32_t>& ids : payload.ids) {
    sequences.add_sequences()->mutable_ids()->mutable_token_ids()->Add(ids.begin(), ids.end());
  }
  return request;
}

void Measure(const v1::EncodeResponse& response, GrpcAnswer& answer) {
  CallResult& result = answer.result;
  answer.sequences = response.sequences_size();
  int64_t tokens = 0;
  for (const v1::SequenceInfo& info : response.sequences()) tokens += info.tokens();
  result.tokens = tokens;
  const v1::Timings& timings = response.timings();
  result.timings = {.tokenize_us = timings.tokenize_us(),
                    .queue_us = timings.queue_us(),
                    .compute_us = timings.compute_us(),
                    .total_us = timings.total_us()};
}

bool ReadEncode(grpc::ByteBuffer& bytes, GrpcAnswer& answer) {
  static thread_local v1::EncodeResponse response;
  if (!ParseAnswer(bytes, response)) return false;
  Measure(response, answer);
  return true;
}

bool ReadEncodeStream(grpc::ByteBuffer& bytes, GrpcAnswer& answer) {
  static thread_local v1::EncodeStreamResponse response;
  if (!ParseAnswer(bytes, response)) return false;
  answer.id = response.id();
  if (response.has_error()) {
    answer.result = {.code = static_cast<grpc::StatusCode>(response.error().code()),
                     .message = response.error().message()};
  } else {
    Measure(response.response(), answer);
  }
  return true;
}

}  // namespace

absl::StatusOr<Target> MakeAttendantTarget(const TargetSpec& spec) {
  ATTENDANT_ASSIGN_OR_RETURN(ModelInfo model, FindModel(spec));
  PayloadSpec payload_spec = spec.payload;
  payload_spec.vocab = std::max<int64_t>(1, std::min(payload_spec.vocab, model.vocab));
  payload_spec.lengths.Limit(std::max<int64_t>(1, model.max_sequence_tokens));

  GrpcLoad load{.channels = {},
                .requests = {},
                .unary = {.path = "/attendant.v1.Encoder/Encode", .read = ReadEncode},
                .stream = {.path = "/attendant.v1.Encoder/EncodeStream",
                           .read = ReadEncodeStream,
                           .id_field = kIdField}};
  ATTENDANT_ASSIGN_OR_RETURN(load.channels, MakeChannels(spec));
  for (const Payload& payload : MakePayloads(payload_spec)) {
    const v1::EncodeRequest request = MakeRequest(model.name, spec, payload);
    load.requests.push_back(ToGrpcRequest(request, request.sequences().sequences_size()));
  }
  return Target{.model = model.name, .caller = MakeGrpcCaller(spec, std::move(load))};
}

}  // namespace attendant::client
