// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant {

// A longer name belongs to no model. The rest of it is not logged.
inline constexpr size_t kMaxLoggedModelBytes = 128;

// The line of one request in the access log, or of a call that was refused before its request was
// read. It has nothing of the request's contents, and no key. It outlives the services.
struct AccessRecord {
  absl::Time time = {};         // of arrival
  std::string request_id = {};  // of the call
  std::string trace_id = {};    // these two are empty without a traceparent
  std::string span_id = {};     // the server's
  std::string peer = {};
  std::string key = {};         // the name of the API key; empty: none was needed
  std::string method = {};      // "attendant.v1.Encoder/Encode"
  std::string model = {};       // as the client named it
  std::string message_id = {};  // the `id` field of the message
  absl::StatusCode code = absl::StatusCode::kOk;
  int64_t sequences = 0, tokens = 0;  // without padding; 0 when the request was not answered
  int64_t request_bytes = 0, response_bytes = 0;
  // The phases of attendant_request_duration_seconds; those but total are 0 without an answer.
  absl::Duration total = {}, tokenize = {}, queue = {}, compute = {}, serialize = {};
};

// One line of JSON with a line end, shorter than 4 KiB. Strings are escaped to ASCII.
std::string ToJsonLine(const AccessRecord& record);

}  // namespace attendant
