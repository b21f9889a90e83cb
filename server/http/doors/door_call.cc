// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/door_call.h"

#include <algorithm>
#include <span>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/http/json/json_writer.h"
#include "server/requests/formats/number_format.h"

namespace attendant {
namespace {

constexpr char kJsonType[] = "application/json";

absl::StatusOr<int64_t> IntegerHeader(const HttpHeaders& header, absl::string_view name,
                                      int64_t otherwise) {
  const std::optional<absl::string_view> text = header(name);
  if (!text.has_value()) return otherwise;
  int64_t value = 0;
  if (absl::SimpleAtoi(*text, &value)) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("the header ", name, " must be an integer, not ", Quote(*text)));
}

}  // namespace

absl::StatusOr<HttpCallOptions> OptionsFromHeaders(const HttpHeaders& header,
                                                   absl::Time head_arrival,
                                                   absl::string_view timeout) {
  HttpCallOptions options;
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t timeout_ms, IntegerHeader(header, timeout, 0));
  if (timeout_ms < 0 || (timeout_ms == 0 && header(timeout).has_value())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header ", timeout, " is ", timeout_ms, ", the minimum is 1"));
  }
  if (timeout_ms > 0) options.deadline = head_arrival + absl::Milliseconds(timeout_ms);
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t priority, IntegerHeader(header, kPriorityHeader, 0));
  options.priority = static_cast<int>(std::clamp<int64_t>(priority, -1000, 1000));
  ATTENDANT_RETURN_IF_ERROR(CheckPriority(options.priority));
  return options;
}

std::vector<absl::string_view> SingleHeaders(absl::string_view own) {
  return {own, kTimeoutHeader, kPriorityHeader};
}

absl::StatusOr<std::string> ModelFromHeaders(const HttpHeaders& header, const ModelRegistry& models,
                                             ModelNeed need) {
  return NamedOrOnlyModel(header(kModelHeader), models, need);
}

DoorModel FieldModel() {
  return [](const DoorDependencies&, const HttpExchange&) { return JsonMessageModel(); };
}

DoorModel FieldOrOnlyModel(ModelNeed need, absl::string_view beside) {
  return [need, beside](const DoorDependencies& dependencies, const HttpExchange& exchange) {
    auto otherwise = [&models = dependencies.encode.requests.models, header = exchange.header, need,
                      beside]() -> absl::StatusOr<std::string> {
      absl::StatusOr<std::string> model = ModelFromHeaders(header, models, need);
      if (model.ok()) return model;
      return absl::InvalidArgumentError(absl::StrCat(model.status().message(),
                                                     ", or in the field model",
                                                     beside.empty() ? "" : " beside ", beside));
    };
    return JsonMessageModel{.beside = beside, .otherwise = std::move(otherwise)};
  };
}

DoorModel HeaderOrOnlyModel(ModelNeed need) {
  return [need](const DoorDependencies& dependencies,
                const HttpExchange& exchange) -> absl::StatusOr<JsonMessageModel> {
    const ModelRegistry& models = dependencies.encode.requests.models;
    ATTENDANT_ASSIGN_OR_RETURN(std::string name, ModelFromHeaders(exchange.header, models, need));
    return JsonMessageModel{.name = std::move(name)};
  };
}

absl::StatusOr<EncodeInput> DoorRun::FromMessage() {
  ATTENDANT_ASSIGN_OR_RETURN(EncodeInput input, FromJson(MessageAs<JsonMessage>(message()).root()));
  input.priority = priority_;
  return input;
}

void DoorRun::ToMessage(EncodeOutput& output) {
  ToJson(output, StartJson(response_, compressible()));
}

absl::StatusOr<std::shared_ptr<EncoderModel>> DoorRun::FindModel() {
  if (call().model.empty()) return absl::InvalidArgumentError("model is missing");
  return EncodeRun::FindModel();
}

int64_t FloatTextBytes(const EncodeOutput& output) {
  constexpr auto kValueBytes = static_cast<int64_t>(sizeof(float));
  return output.response_bytes / kValueBytes * (kJsonFloatBytes - kValueBytes);
}

RequestCall MakeRequestCall(Method method, std::unique_ptr<RequestMessage> message,
                            absl::Time deadline, std::unique_ptr<HttpExchange> exchange) {
  std::shared_ptr<CallState> state = exchange->state;
  return {.method = method,
          .message = std::move(message),
          .arrival = exchange->arrival,
          .deadline = deadline,
          .state = std::move(state),
          .write = [&answered = *exchange] { return CompressAnswer(answered); },
          .done =
              [exchange = std::move(exchange)](const absl::Status& status) mutable {
                EndExchange(std::move(exchange), status);
              }};
}

void EndSmall(const DoorDependencies& dependencies, std::unique_ptr<HttpExchange> exchange,
              const absl::Status& status) {
  const RequestDependencies& requests = dependencies.encode.requests;
  if (absl::IsInvalidArgument(status)) requests.metrics.CountRefused(Refusal::kMessage);
  const int64_t response_bytes = status.ok() ? CompressAnswer(*exchange) : 0;
  requests.gate.Ended(exchange->state->call(),
                      {.code = status.code(),
                       .request_bytes = static_cast<int64_t>(exchange->body.size()),
                       .response_bytes = response_bytes,
                       .total = SteadyNow() - exchange->arrival});
  EndExchange(std::move(exchange), status);
}

void AppendJsonBase64(const std::vector<float>& values, std::string& json) {
  // In pieces, so that no copy of a long answer is made; of whole groups of three bytes.
  constexpr size_t kPiece = 3 * 1024;
  const std::span<const float> all = values;
  std::string bytes, text;
  json.push_back('"');
  for (size_t i = 0; i < all.size(); i += kPiece) {
    bytes.clear();
    AppendValues(all.subspan(i, std::min(kPiece, all.size() - i)), NumberFormat::kF32, bytes);
    absl::Base64Escape(bytes, &text);
    json += text;
  }
  json.push_back('"');
}

std::function<void(std::unique_ptr<HttpExchange>)> Small(const DoorDependencies& dependencies,
                                                         SmallHandler handler) {
  return [&dependencies, handler = std::move(handler)](std::unique_ptr<HttpExchange> exchange) {
    exchange->response.content_type = kJsonType;
    exchange->response.compressible = true;
    const absl::Status status = handler(*exchange, exchange->response.body);
    EndSmall(dependencies, std::move(exchange), status);
  };
}

HttpResponse JsonFailure(const HttpFailure& failure, absl::string_view key,
                         absl::string_view more) {
  HttpResponse response{.code = failure.code, .content_type = kJsonType};
  absl::StrAppend(&response.body, "{\"", key, "\":");
  AppendJsonString(failure.status.message(), response.body);
  absl::StrAppend(&response.body, more, "}");
  return response;
}

std::string& StartJson(HttpResponse& response, bool compressible) {
  response.content_type = kJsonType;
  response.compressible = compressible;
  return response.body;
}

}  // namespace attendant
