// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/core/check.h"

namespace attendant {

inline constexpr size_t kMaxIdBytes = 256;  // of a request's id, in every protocol

// The message of a request as it arrived. It is bytes until its run has accounted for them, then
// for what parsing will take: see RequestRun.
class RequestMessage {
 public:
  RequestMessage() = default;
  virtual ~RequestMessage() = default;
  RequestMessage(const RequestMessage&) = delete;
  RequestMessage& operator=(const RequestMessage&) = delete;

  virtual int64_t bytes() const = 0;
  // The bytes that Scan and Parse read, at most: more than bytes() if the message is compressed.
  // REQUIRES: not parsed.
  virtual int64_t parse_bytes() const { return bytes(); }

  // Looks at the bytes without taking memory. Returns the memory that Parse takes, at most.
  // INVALID_ARGUMENT names what is wrong, or of what the message has too much.
  virtual absl::StatusOr<int64_t> Scan() = 0;
  // REQUIRES: Scan returned OK.
  virtual absl::Status Parse() = 0;

  // The findings of Scan or Parse, also when it failed later: an id that may go back to the client,
  // and the model as the client named it. Empty: none.
  virtual const std::string& id() const = 0;
  virtual const std::string& model() const = 0;
};

// The message as the class that the request's transport made. REQUIRES: it is one.
template <typename Message>
const Message& MessageAs(const RequestMessage& message) {
  const auto* typed = dynamic_cast<const Message*>(&message);
  ATTENDANT_CHECK(typed != nullptr);
  return *typed;
}

}  // namespace attendant
