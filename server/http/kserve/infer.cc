// SPDX-License-Identifier: Apache-2.0
#include "server/http/kserve/infer.h"

#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "server/http/json/json_writer.h"
#include "server/http/kserve/infer_message.h"
#include "server/protocols/kserve/infer_run.h"

namespace attendant {
namespace {

// A request from its arrival until its answer is sent.
struct Inference {
  std::unique_ptr<HttpExchange> exchange;
  InferForm form;
  inference::ModelInferResponse response;
};

constexpr InferMessageAccess kAccess = {
    .request = [](const RequestMessage& message) -> const inference::ModelInferRequest& {
      return MessageAs<InferMessage>(message).request();
    },
    .text_bytes = [](const RequestMessage& message) -> int64_t {
      return MessageAs<InferMessage>(message).form().all_binary()
                 ? 0
                 : kJsonFloatBytes - int64_t{sizeof(float)};
    }};

template <typename T>
std::vector<T> ValuesOf(const std::string& raw) {
  std::vector<T> values(raw.size() / sizeof(T));
  std::memcpy(values.data(), raw.data(), values.size() * sizeof(T));
  return values;
}

void AppendOutput(const inference::ModelInferResponse::InferOutputTensor& tensor, std::string& raw,
                  bool binary, std::string& json) {
  json += "{\"name\":";
  AppendJsonString(tensor.name(), json);
  absl::StrAppend(&json, ",\"datatype\":\"", tensor.datatype(), "\",\"shape\":[",
                  absl::StrJoin(tensor.shape(), ","), "]");
  if (binary) {
    absl::StrAppend(&json, ",\"parameters\":{\"binary_data_size\":", raw.size(), "}");
  } else {
    json += ",\"data\":";
    if (tensor.datatype() == "INT32") {
      AppendJsonIntegers(std::span<const int32_t>(ValuesOf<int32_t>(raw)), json);
    } else {
      AppendJsonFloats(ValuesOf<float>(raw), json);
    }
    raw = std::string();
  }
  json.push_back('}');
}

// The JSON, then the tensors as bytes. Returns the bytes of both as the client gets them.
int64_t WriteAnswer(Inference& inference) {
  HttpResponse& response = inference.exchange->response;
  std::string& body = response.body;
  body = "{\"model_name\":";
  AppendJsonString(inference.response.model_name(), body);
  absl::StrAppend(&body, ",\"model_version\":\"", inference.response.model_version(), "\"");
  if (!inference.response.id().empty()) {
    body += ",\"id\":";
    AppendJsonString(inference.response.id(), body);
  }
  body += ",\"outputs\":[";
  auto& raws = *inference.response.mutable_raw_output_contents();
  bool any_binary = false;
  for (int i = 0; i < inference.response.outputs_size(); ++i) {
    if (i > 0) body.push_back(',');
    const auto& tensor = inference.response.outputs(i);
    const bool binary = inference.form.IsBinary(tensor.name());
    any_binary = any_binary || binary;
    AppendOutput(tensor, raws[i], binary, body);
  }
  body += "]}";
  response.content_type = "application/json";
  response.compressible = !any_binary;
  if (!any_binary) return CompressAnswer(*inference.exchange);
  response.content_type = "application/octet-stream";
  response.headers.emplace_back("Inference-Header-Content-Length", absl::StrCat(body.size()));
  for (const std::string& raw : raws) body += raw;
  return CompressAnswer(*inference.exchange);
}

absl::StatusOr<std::optional<int64_t>> HeaderLength(const HttpExchange& exchange) {
  const std::optional<absl::string_view> text = exchange.header(kJsonLengthHeader);
  if (!text) return std::nullopt;
  int64_t bytes = 0;
  if (absl::SimpleAtoi(*text, &bytes) && bytes >= 0) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat(kJsonLengthHeader, " must be a number of bytes, not ", Quote(*text)));
}

}  // namespace

HttpResponse KServeError(const HttpFailure& failure) { return JsonFailure(failure, "error"); }

void StartHttpInfer(const DoorDependencies& dependencies, const KServeModels& models,
                    std::string model, std::string version,
                    std::unique_ptr<HttpExchange> exchange) {
  const absl::StatusOr<HttpCallOptions> options =
      OptionsFromHeaders(exchange->header, exchange->head_arrival);
  const absl::StatusOr<std::optional<int64_t>> json_bytes = HeaderLength(*exchange);
  if (!options.ok()) return EndSmall(dependencies, std::move(exchange), options.status());
  if (!json_bytes.ok()) return EndSmall(dependencies, std::move(exchange), json_bytes.status());
  auto inference = std::make_unique<Inference>();
  inference->exchange = std::move(exchange);
  HttpExchange& in = *inference->exchange;
  RequestCall call{
      .method = Method::kHttpModelInfer,
      .message = std::make_unique<InferMessage>(
          HttpBody{std::move(in.body), in.gzip, dependencies.max_request_bytes},
          InferMessage::Head{std::move(model), std::move(version), *json_bytes, options->priority,
                             dependencies.encode.limits.max_request_sequences},
          inference->form),
      .arrival = in.arrival,
      .deadline = options->deadline,
      .state = in.state,
      .done = {}};
  inference::ModelInferResponse& response = inference->response;
  call.write = [inference = inference.get()] { return WriteAnswer(*inference); };
  call.done = [inference = std::move(inference)](const absl::Status& status) {
    EndExchange(std::move(inference->exchange), status);
  };
  StartInfer(dependencies.encode, models, nullptr, kAccess, std::move(call), response);
}

}  // namespace attendant
