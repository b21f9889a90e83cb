// SPDX-License-Identifier: Apache-2.0
#include "server/http/proto_json/proto_writer.h"

#include <google/protobuf/descriptor.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/http/json/json_writer.h"

namespace attendant {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A field's value; of a repeated field, that at `index`.
class FieldWriter {
 public:
  FieldWriter(const Message& message, const FieldDescriptor& field, std::string& json)
      : message_(message), reflection_(*message.GetReflection()), field_(field), json_(json) {}

  void AppendAll() {
    if (field_.is_map()) return AppendMap();
    if (!field_.is_repeated()) return Append(-1);
    json_.push_back('[');
    for (int i = 0; i < reflection_.FieldSize(message_, &field_); ++i) {
      if (i > 0) json_.push_back(',');
      Append(i);
    }
    json_.push_back(']');
  }

 private:
  void AppendMap() {
    json_.push_back('{');
    for (int i = 0; i < reflection_.FieldSize(message_, &field_); ++i) {
      if (i > 0) json_.push_back(',');
      const Message& entry = reflection_.GetRepeatedMessage(message_, &field_, i);
      const auto& type = *entry.GetDescriptor();
      FieldWriter(entry, *type.map_key(), json_).AppendAll();
      json_.push_back(':');
      FieldWriter(entry, *type.map_value(), json_).AppendAll();
    }
    json_.push_back('}');
  }

  template <typename Value>
  Value Get(Value (Reflection::*single)(const Message&, const FieldDescriptor*) const,
            Value (Reflection::*repeated)(const Message&, const FieldDescriptor*, int) const,
            int index) const {
    return index < 0 ? (reflection_.*single)(message_, &field_)
                     : (reflection_.*repeated)(message_, &field_, index);
  }

  void Append(int index) {
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        json_ += Get(&Reflection::GetBool, &Reflection::GetRepeatedBool, index) ? "true" : "false";
        return;
      case FieldDescriptor::CPPTYPE_INT32:
        absl::StrAppend(&json_, Get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32, index));
        return;
      case FieldDescriptor::CPPTYPE_UINT32:
        absl::StrAppend(&json_, Get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32, index));
        return;
      case FieldDescriptor::CPPTYPE_INT64:
        absl::StrAppend(&json_, Get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64, index));
        return;
      case FieldDescriptor::CPPTYPE_UINT64:
        absl::StrAppend(&json_, Get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64, index));
        return;
      case FieldDescriptor::CPPTYPE_FLOAT:
        AppendJsonFloat(Get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat, index), json_);
        return;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        AppendJsonFloat(
            static_cast<float>(Get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble, index)),
            json_);
        return;
      case FieldDescriptor::CPPTYPE_ENUM:
        AppendJsonString(Get(&Reflection::GetEnum, &Reflection::GetRepeatedEnum, index)->name(),
                         json_);
        return;
      case FieldDescriptor::CPPTYPE_STRING:
        AppendText(Get(&Reflection::GetString, &Reflection::GetRepeatedString, index));
        return;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        AppendProtoJson(index < 0 ? reflection_.GetMessage(message_, &field_)
                                  : reflection_.GetRepeatedMessage(message_, &field_, index),
                        json_);
        return;
    }
  }

  void AppendText(const std::string& value) {
    if (field_.type() != FieldDescriptor::TYPE_BYTES) return AppendJsonString(value, json_);
    absl::StrAppend(&json_, "\"", absl::Base64Escape(value), "\"");
  }

  const Message& message_;
  const Reflection& reflection_;
  const FieldDescriptor& field_;
  std::string& json_;
};

// Numbers and strings are there also when they are 0 or empty.
bool IsThere(const Message& message, const FieldDescriptor& field) {
  if (field.is_repeated() || !field.has_presence()) return true;
  return message.GetReflection()->HasField(message, &field);
}

}  // namespace

void AppendProtoJson(const Message& message, std::string& json) {
  const auto& type = *message.GetDescriptor();
  json.push_back('{');
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!IsThere(message, field)) continue;
    if (json.back() != '{') json.push_back(',');
    AppendJsonString(field.name(), json);
    json.push_back(':');
    FieldWriter(message, field, json).AppendAll();
  }
  json.push_back('}');
}

}  // namespace attendant
