// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/serialization_traits.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/strings/string_view.h"

namespace attendant::client {

// The error of an answer that ParseAnswer cannot read; its code is INTERNAL.
inline constexpr absl::string_view kNoAnswer = "the bytes of the answer are no answer";

// Reads the bytes of an answer, and may take them away. False: they are no such message. Every call
// receives bytes and reads them here: gRPC 1.51 itself hands a message that it could not parse to a
// callback, half filled, and says OK. `message` can be kept from answer to answer, with its memory.
template <typename Message>
bool ParseAnswer(grpc::ByteBuffer& bytes, Message& message) {
  return grpc::SerializationTraits<Message>::Deserialize(&bytes, &message).ok();
}

}  // namespace attendant::client
