// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

// Takes requests of OTLP in JSON to a collector.
class SpanTransport {
 public:
  struct Answer {
    int code = 0;                  // of HTTP
    std::string retry_after = {};  // the header, as it came
    std::string body = {};         // perhaps cut
  };

  virtual ~SpanTransport() = default;

  // Sends one request and waits for its answer, at most for `timeout`. UNAVAILABLE or
  // DEADLINE_EXCEEDED: none came. Called from one thread at a time.
  virtual absl::StatusOr<Answer> Post(absl::string_view json, absl::Duration timeout) = 0;

  // Makes a Post that waits, and each one after, end soon with an error. Callable from any thread.
  virtual void Cancel() = 0;
};

}  // namespace attendant
