// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/tracing/traced_batch.h"

namespace attendant {

// The trace of one request, or of a whole stream. It has nothing of the request's contents, and no
// key. It takes about 2 KiB at most, and 80 bytes for each batch.
struct RequestTrace {
  enum class Kind {
    kRequest,  // a call with one request
    kStream,   // a call with many
    kMessage,  // a request of such a call
  };

  Kind kind = Kind::kRequest;
  uint64_t trace_high = 0, trace_low = 0;  // the trace's id
  uint64_t span = 0;                       // the request's
  uint64_t parent = 0;                     // 0: the trace begins here
  std::string state = {};                  // tracestate

  absl::Time start = {};    // of the wall clock
  absl::Time arrival = {};  // the same moment of the steady clock
  absl::Duration total = {};

  std::string method = {};  // "attendant.v1.Encoder/Encode", "POST /v1/embeddings"
  std::string peer = {};
  std::string key = {};         // the name of the API key
  std::string request_id = {};  // of the call
  std::string message_id = {};
  std::string model = {};
  absl::StatusCode code = absl::StatusCode::kOk;
  int64_t sequences = 0, tokens = 0;
  int64_t request_bytes = 0, response_bytes = 0;

  // The phases of attendant_request_duration_seconds. Zero: there was none.
  absl::Duration tokenize = {}, queue = {}, compute = {}, serialize = {};
  absl::Duration submitted = {};  // since arrival: tokenizing ended
  absl::Duration answering = {};  // since arrival: serializing began
  std::vector<TracedBatch> batches = {};
};

}  // namespace attendant
