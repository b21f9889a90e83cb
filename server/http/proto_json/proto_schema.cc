// SPDX-License-Identifier: Apache-2.0
#include "server/http/proto_json/proto_schema.h"

#include "absl/strings/str_cat.h"
#include "server/http/json/json_writer.h"

namespace attendant {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

std::string EnumSchema(const EnumDescriptor& type) {
  std::string json = R"({"enum":[)";
  for (int i = 0; i < type.value_count(); ++i) {
    if (i > 0) json.push_back(',');
    AppendJsonString(type.value(i)->name(), json);
  }
  return json + "]}";
}

std::string ValueSchema(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return R"({"type":"boolean"})";
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
      return R"({"type":"integer"})";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return R"({"type":"number"})";
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumSchema(*field.enum_type());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ProtoJsonSchema(*field.message_type());
    case FieldDescriptor::CPPTYPE_STRING:
      break;
  }
  if (field.type() != FieldDescriptor::TYPE_BYTES) return R"({"type":"string"})";
  return R"({"type":"string","contentEncoding":"base64"})";
}

}  // namespace

std::string ProtoJsonSchema(const google::protobuf::Descriptor& type) {
  std::string json = R"({"type":"object","properties":{)";
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (i > 0) json.push_back(',');
    AppendJsonString(field.name(), json);
    const std::string value = ValueSchema(field);
    absl::StrAppend(
        &json, ":",
        field.is_repeated() ? absl::StrCat(R"({"type":"array","items":)", value, "}") : value);
  }
  return json + R"(},"additionalProperties":false})";
}

}  // namespace attendant
