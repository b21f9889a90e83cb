// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/requests/request_message.h"

namespace attendant {

// A message of type M, whatever it was on the wire.
template <typename M>
class TypedMessage : public RequestMessage {
 public:
  // REQUIRES: Parse returned OK.
  virtual const M& message() const = 0;
  // The answer is written as JSON, its tensors in base64.
  virtual bool wants_json() const { return false; }
};

// REQUIRES: `message` is a TypedMessage<M> that has been parsed.
template <typename M>
const M& Parsed(const RequestMessage& message) {
  return MessageAs<TypedMessage<M>>(message).message();
}

}  // namespace attendant
