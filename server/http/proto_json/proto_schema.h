// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>

namespace attendant {

// The JSON Schema of a message, as ReadProtoJson takes it and AppendProtoJson writes it. REQUIRES:
// no message of the type is in itself.
std::string ProtoJsonSchema(const google::protobuf::Descriptor& type);

}  // namespace attendant
