// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include "absl/status/status.h"
#include "server/http/json/json_view.h"

namespace attendant {

// Fills an empty message from a JSON object, as protobuf's JSON mapping says: names as in the proto
// or in lowerCamelCase, enums by name or number, bytes in base64, numbers also as strings; null is
// a field that was not sent. INVALID_ARGUMENT names the field that is unknown, comes twice, has the
// wrong type, or is the second of a oneof. REQUIRES: the message's type has no maps, and no message
// in itself.
absl::Status ReadProtoJson(JsonView object, google::protobuf::Message& message);

}  // namespace attendant
