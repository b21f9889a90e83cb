// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/load/protocols/http/http_load.h"
#include "client/load/protocols/http/kserve_http_request.h"
#include "client/load/protocols/kserve_request.h"
#include "client/load/protocols/protocols.h"
#include "inference/grpc_service.pb.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

// A part of a path; a model's name may have any character.
std::string PathPart(absl::string_view name) {
  std::string part;
  for (const char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-._~", c)) {
      part.push_back(c);
    } else {
      absl::StrAppendFormat(&part, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return part;
}

// Of the model's metadata; the paths below it are those of its other calls.
std::string ModelPath(const TargetSpec& spec) {
  std::string path = absl::StrCat("/v2/models/", PathPart(spec.model));
  if (spec.model_version != 0) absl::StrAppend(&path, "/versions/", spec.model_version);
  return path;
}

// Fills a message of the protocol over gRPC: over HTTP it is the same as JSON, though some servers
// write 64-bit integers as strings, and some fields beside.
template <typename Message>
absl::Status ReadJson(const std::string& text, Message& message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &message, options);
  if (status.ok()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the description of the model cannot be read: ", status.ToString()));
}

// Of a server without this path: KServe has no word for it, and servers differ.
bool HasNoPath(int code) { return code == 400 || code == 404 || code == 405 || code == 501; }

absl::StatusOr<KserveModel> AskForModel(HttpTarget target, const TargetSpec& spec) {
  ATTENDANT_ASSIGN_OR_RETURN(const HttpAnswer described, HttpGet(target));
  ATTENDANT_RETURN_IF_ERROR(StatusOf(described));
  inference::ModelMetadataResponse metadata;
  ATTENDANT_RETURN_IF_ERROR(ReadJson(described.body, metadata));
  target.path += "/config";
  inference::ModelConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(const HttpAnswer configured, HttpGet(target));
  if (!HasNoPath(configured.code)) {
    ATTENDANT_RETURN_IF_ERROR(StatusOf(configured));
    ATTENDANT_RETURN_IF_ERROR(ReadJson(configured.body, config));
  }
  return DescribeKserveModel(metadata, config, spec.shapes);
}

// Of the first output's shape, which has the batch dimension; 0: there is no output.
int64_t CountSequences(absl::string_view body) {
  absl::string_view shape = FromField("shape", body);
  shape.remove_prefix(std::min(shape.find_first_not_of("[\" \t\r\n"), shape.size()));
  int64_t sequences = 0;
  const bool told =
      absl::SimpleAtoi(shape.substr(0, shape.find_first_not_of("0123456789")), &sequences);
  return told ? sequences : 0;
}

}  // namespace

absl::StatusOr<Target> MakeKserveHttpTarget(const TargetSpec& spec) {
  ATTENDANT_ASSIGN_OR_RETURN(HttpTarget target, HttpTargetOf(spec));
  target.path = ModelPath(spec);
  ATTENDANT_ASSIGN_OR_RETURN(const KserveModel model, AskForModel(target, spec));
  target.path += "/infer";
  if (!spec.json_tensors) {  // each request says how much of it is JSON
    std::erase_if(target.headers, [](const auto& header) { return header.first == kContentType; });
  }
  std::vector<HttpRequest> requests;
  for (const Payload& payload : MakePayloads(spec.payload)) {
    ATTENDANT_ASSIGN_OR_RETURN(const KserveRequest request, MakeKserveRequest(model, payload));
    requests.push_back(ToKserveHttpRequest(request, spec.json_tensors));
    requests.back().sequences = NumSequences(payload);
  }
  const bool batched = model.max_batch_size > 0;
  return MakeHttpTarget({.name = spec.model, .takes_ids = !model.takes_texts()}, std::move(target),
                        std::move(requests), [batched](absl::string_view body, CallResult& result) {
                          if (batched) result.sequences = CountSequences(body);
                        });
}

}  // namespace attendant::client
