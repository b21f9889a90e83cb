// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace attendant {

// Appends a message as a JSON object with the names of its proto. Numbers of 64 bits are numbers,
// as Triton writes them; protobuf's own JSON has them as strings. Bytes are in base64. Messages and
// choices that are not set are left out.
void AppendProtoJson(const google::protobuf::Message& message, std::string& json);

}  // namespace attendant
