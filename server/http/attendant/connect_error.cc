// SPDX-License-Identifier: Apache-2.0
#include "server/http/attendant/connect_error.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/http/json/json_writer.h"

namespace attendant {
namespace {

// Connect spells CANCELLED with one l.
std::string ConnectCode(absl::StatusCode code) {
  if (code == absl::StatusCode::kCancelled) return "canceled";
  return absl::AsciiStrToLower(absl::StatusCodeToString(code));
}

}  // namespace

HttpResponse ConnectError(const HttpFailure& failure) {
  HttpResponse response{.code = failure.code, .content_type = "application/json"};
  absl::StrAppend(&response.body, R"({"code":")", ConnectCode(failure.status.code()),
                  R"(","message":)");
  AppendJsonString(failure.status.message(), response.body);
  response.body += "}";
  return response;
}

}  // namespace attendant
