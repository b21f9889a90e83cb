// SPDX-License-Identifier: Apache-2.0
#include "server/http/proto_json/proto_reader.h"

#include <google/protobuf/descriptor.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Kind = JsonView::Kind;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Where a value stands, for errors: "sequences.sequences[3].text".
struct Place {
  const Place* outer = nullptr;
  const FieldDescriptor* field = nullptr;
  int64_t index = -1;

  std::string Text() const {
    std::string text = outer == nullptr || outer->field == nullptr ? "" : outer->Text() + ".";
    absl::StrAppend(&text, field->name());
    if (index >= 0) absl::StrAppend(&text, "[", index, "]");
    return text;
  }
};

absl::StatusOr<bool> ReadBool(const Place& place, JsonView value) {
  if (value.kind() == Kind::kBool) return value.Bool();
  return WrongJsonType(place.Text(), "a boolean", value);
}

// Of a number that was written with a fraction or an exponent, as 1.0 or 1e3.
std::optional<int64_t> WholeNumber(double number) {
  constexpr double kEnd = 0x1p63;
  if (!(number >= -kEnd && number < kEnd) || number != std::trunc(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

absl::StatusOr<int64_t> ReadInteger(const Place& place, JsonView value) {
  int64_t number = 0;
  double fraction = 0;
  std::optional<int64_t> whole;
  if (value.kind() == Kind::kInteger) return value.Integer();
  if (value.kind() == Kind::kString && absl::SimpleAtoi(value.String(), &number)) return number;
  if (value.kind() == Kind::kNumber) whole = WholeNumber(value.Number());
  if (value.kind() == Kind::kString && absl::SimpleAtod(value.String(), &fraction)) {
    whole = WholeNumber(fraction);
  }
  if (whole) return *whole;
  return WrongJsonType(place.Text(), "an integer", value);
}

template <typename Integer>
absl::StatusOr<Integer> ReadIntegerOf(const Place& place, JsonView value) {
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t number, ReadInteger(place, value));
  if (std::in_range<Integer>(number)) return static_cast<Integer>(number);
  return Invalid(place.Text(), " is ", number, ", which its type does not hold");
}

absl::StatusOr<double> ReadNumber(const Place& place, JsonView value) {
  double number = 0;
  if (value.kind() == Kind::kInteger || value.kind() == Kind::kNumber) return value.Number();
  if (value.kind() == Kind::kString && absl::SimpleAtod(value.String(), &number)) return number;
  return WrongJsonType(place.Text(), "a number", value);
}

absl::StatusOr<std::string> ReadText(const Place& place, JsonView value) {
  if (value.kind() != Kind::kString) return WrongJsonType(place.Text(), "a string", value);
  if (place.field->type() != FieldDescriptor::TYPE_BYTES) return std::string(value.String());
  std::string bytes;
  if (absl::Base64Unescape(value.String(), &bytes)) return bytes;
  if (absl::WebSafeBase64Unescape(value.String(), &bytes)) return bytes;
  return Invalid(place.Text(), " is not base64");
}

// Numbers that the enum does not have are for the protocol to refuse, as on gRPC.
absl::StatusOr<int> ReadEnum(const Place& place, JsonView value) {
  if (value.kind() != Kind::kString) return ReadIntegerOf<int>(place, value);
  const auto& type = *place.field->enum_type();
  const EnumValueDescriptor* found = type.FindValueByName(std::string(value.String()));
  if (found != nullptr) return found->number();
  std::vector<absl::string_view> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  return Invalid(place.Text(), " is ", Quote(value.String()), ", it must be one of ",
                 absl::StrJoin(names, ", "));
}

class MessageReader {
 public:
  MessageReader(const Place* place, Message& message)
      : place_(place), message_(message), reflection_(*message.GetReflection()) {}

  absl::Status Read(JsonView object) {
    if (object.kind() != Kind::kObject) {
      return WrongJsonType(place_ == nullptr ? "the body" : place_->Text(), "an object", object);
    }
    return object.ForEachField(
        [this](absl::string_view name, JsonView value) { return ReadField(name, value); });
  }

 private:
  absl::Status ReadField(absl::string_view name, JsonView value) {
    const Descriptor& type = *message_.GetDescriptor();
    const FieldDescriptor* field = type.FindFieldByName(std::string(name));
    if (field == nullptr) field = type.FindFieldByCamelcaseName(std::string(name));
    if (field == nullptr) return Unknown(name);
    const Place place{place_, field};
    if (!seen_.insert(field).second) return Invalid(place.Text(), " comes twice");
    if (value.kind() == Kind::kNull) return absl::OkStatus();
    ATTENDANT_RETURN_IF_ERROR(CheckChoice(place));
    if (!field->is_repeated()) return ReadValue(place, value);
    if (value.kind() != Kind::kArray) return WrongJsonType(place.Text(), "an array", value);
    Place element{place_, field, 0};
    return value.ForEach([&](JsonView each) {
      ATTENDANT_RETURN_IF_ERROR(ReadValue(element, each));
      ++element.index;
      return absl::OkStatus();
    });
  }

  absl::Status Unknown(absl::string_view name) const {
    constexpr size_t kShown = 64;
    std::vector<absl::string_view> names;
    const Descriptor& type = *message_.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
    return Invalid(type.name(), " has no field ", Quote(name.substr(0, kShown)), "; it has ",
                   absl::StrJoin(names, ", "));
  }

  absl::Status CheckChoice(const Place& place) const {
    const auto* choice = place.field->real_containing_oneof();
    if (choice == nullptr || !reflection_.HasOneof(message_, choice)) return absl::OkStatus();
    return Invalid(place.Text(), " and ",
                   reflection_.GetOneofFieldDescriptor(message_, choice)->name(),
                   " exclude each other");
  }

  absl::Status ReadValue(const Place& place, JsonView value) {
    switch (place.field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        return Put(place, ReadBool(place, value), &Reflection::SetBool, &Reflection::AddBool);
      case FieldDescriptor::CPPTYPE_INT32:
        return Put(place, ReadIntegerOf<int32_t>(place, value), &Reflection::SetInt32,
                   &Reflection::AddInt32);
      case FieldDescriptor::CPPTYPE_UINT32:
        return Put(place, ReadIntegerOf<uint32_t>(place, value), &Reflection::SetUInt32,
                   &Reflection::AddUInt32);
      case FieldDescriptor::CPPTYPE_INT64:
        return Put(place, ReadInteger(place, value), &Reflection::SetInt64, &Reflection::AddInt64);
      case FieldDescriptor::CPPTYPE_UINT64:
        return Put(place, ReadIntegerOf<uint64_t>(place, value), &Reflection::SetUInt64,
                   &Reflection::AddUInt64);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return Put<float>(place, ReadNumber(place, value), &Reflection::SetFloat,
                          &Reflection::AddFloat);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return Put(place, ReadNumber(place, value), &Reflection::SetDouble, &Reflection::AddDouble);
      case FieldDescriptor::CPPTYPE_ENUM:
        return Put(place, ReadEnum(place, value), &Reflection::SetEnumValue,
                   &Reflection::AddEnumValue);
      case FieldDescriptor::CPPTYPE_STRING:
        return Put(place, ReadText(place, value), &Reflection::SetString, &Reflection::AddString);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        break;
    }
    Message* inner = place.field->is_repeated()
                         ? reflection_.AddMessage(&message_, place.field)
                         : reflection_.MutableMessage(&message_, place.field);
    return MessageReader(&place, *inner).Read(value);
  }

  template <typename Value, typename Read>
  absl::Status Put(const Place& place, absl::StatusOr<Read> value,
                   void (Reflection::*set)(Message*, const FieldDescriptor*, Value) const,
                   void (Reflection::*add)(Message*, const FieldDescriptor*, Value) const) {
    ATTENDANT_RETURN_IF_ERROR(value.status());
    const auto put = place.field->is_repeated() ? add : set;
    (reflection_.*put)(&message_, place.field, static_cast<Value>(*std::move(value)));
    return absl::OkStatus();
  }

  const Place* const place_;  // null: the whole message
  Message& message_;
  const Reflection& reflection_;
  absl::flat_hash_set<const FieldDescriptor*> seen_;
};

}  // namespace

absl::Status ReadProtoJson(JsonView object, Message& message) {
  return MessageReader(nullptr, message).Read(object);
}

}  // namespace attendant
