// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/http/http_client.h"
#include "client/load/protocols/http/http_caller.h"
#include "client/load/protocols/protocols.h"

// The steps that all protocols over HTTP take.
namespace attendant::client {

inline constexpr char kContentType[] = "Content-Type";

// The target of a spec's requests: the address, the header for JSON, and the API key.
// FAILED_PRECONDITION: spec.connect asks for another address than that of plain HTTP, or for TLS or
// a trace. INVALID_ARGUMENT: the key's file cannot be used.
absl::StatusOr<HttpTarget> HttpTargetOf(const TargetSpec& spec);

// JSON in one line; bytes that are no UTF-8 are replaced.
std::string ToBody(const nlohmann::json& json);

// The answer to a GET of target.path, of any code. Errors say that no whole answer came.
absl::StatusOr<HttpAnswer> HttpGet(const HttpTarget& target);

// The model that requests are for.
struct HttpModel {
  std::string name;
  bool takes_ids = false;  // otherwise random token ids go as words
};

// Sends the first request once, to find out that the server cannot be reached or refuses it.
// REQUIRES: `requests` is not empty.
absl::StatusOr<Target> MakeHttpTarget(HttpModel model, HttpTarget target,
                                      std::vector<HttpRequest> requests,
                                      HttpCaller::Measure measure);

// Helpers for a Measure: they search an answer's JSON for fields without parsing its thousands of
// numbers. Returned texts cannot contain a match, because their quotes are escaped.

// The number of JSON fields `name` in `body`.
int64_t CountFields(absl::string_view name, absl::string_view body);
// The body from the value of the first field `name` on; empty where there is none.
absl::string_view FromField(absl::string_view name, absl::string_view body);
// Takes the tokens from the last field `name`.
HttpCaller::Measure TokensIn(absl::string_view name);

// A header's value. FAILED_PRECONDITION for a `model` with other than visible ASCII characters.
absl::StatusOr<std::string> ModelHeader(const std::string& model);

}  // namespace attendant::client
