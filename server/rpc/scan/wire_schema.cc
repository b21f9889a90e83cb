// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/scan/wire_schema.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>

#include <algorithm>

#include "kernels/core/check.h"

namespace attendant {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr int kMaxNumber = 255;
constexpr int kMaxOnce = 64;

// A string takes an object, a pointer to it, and its entry in the arena's list of destructors.
constexpr int64_t kStringBytes = 64;
constexpr int64_t kPointerBytes = 16;  // of a repeated field that has grown

// An entry of a map: a node with key and value, and its place in a table that has room to grow.
constexpr int64_t kMapEntryBytes = 192;

// An array of numbers doubles as it grows, in an arena that frees nothing, and is then copied to
// the form in which the server checks it.
constexpr int64_t kCopiesOfNumbers = 6;

WireSchema::Kind KindOf(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return WireSchema::Kind::kFixed64;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return WireSchema::Kind::kFixed32;
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
      return WireSchema::Kind::kBytes;
    case FieldDescriptor::TYPE_MESSAGE:
      return WireSchema::Kind::kMessage;
    case FieldDescriptor::TYPE_GROUP:
      return WireSchema::Kind::kUnknown;
    default:
      return WireSchema::Kind::kVarint;
  }
}

int64_t NumberBytes(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return 1;
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return 8;
    default:
      return 4;
  }
}

// An empty message of this type in memory.
int64_t MessageBytes(const Descriptor& type) {
  // An entry of a map is no message of its own once it is parsed.
  if (type.options().map_entry()) return kMapEntryBytes;
  const auto* prototype =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
  ATTENDANT_CHECK(prototype != nullptr);
  return static_cast<int64_t>(prototype->SpaceUsedLong());
}

int64_t ElementBytes(const FieldDescriptor& field) {
  switch (KindOf(field)) {
    case WireSchema::Kind::kUnknown:
      return 0;
    case WireSchema::Kind::kBytes:
      return kStringBytes;
    case WireSchema::Kind::kMessage:
      return MessageBytes(*field.message_type()) + kPointerBytes;
    default:
      return field.is_repeated() ? kCopiesOfNumbers * NumberBytes(field) : 0;
  }
}

}  // namespace

// Walks the types that a message contains, each once.
class WireSchema::Compiler {
 public:
  Compiler(WireSchema& schema, const WireRules& rules) : schema_(schema), rules_(rules) {}

  const Message& Compile(const Descriptor& type) {
    if (const auto found = schema_.messages_.find(&type); found != schema_.messages_.end()) {
      ATTENDANT_CHECK(found->second != nullptr);  // null: the type contains itself
      return *found->second;
    }
    schema_.messages_[&type] = nullptr;
    auto message = std::make_unique<Message>();
    int once = 0;
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      ATTENDANT_CHECK(field.number() <= kMaxNumber);
      const auto number = static_cast<size_t>(field.number());
      if (message->fields.size() <= number) message->fields.resize(number + 1);
      message->fields[number] = Compile(field, once);
    }
    ATTENDANT_CHECK(once <= kMaxOnce);
    std::unique_ptr<Message>& place = schema_.messages_[&type];
    place = std::move(message);
    return *place;
  }

  void MarkNamed(const Descriptor& type, Message& message) {
    for (const auto& [name, meaning] : {std::pair(rules_.id_field, Meaning::kId),
                                        std::pair(rules_.model_field, Meaning::kModel)}) {
      if (name.empty()) continue;
      const FieldDescriptor* field = type.FindFieldByName(name);
      ATTENDANT_CHECK(field != nullptr && field->type() == FieldDescriptor::TYPE_STRING);
      message.fields[static_cast<size_t>(field->number())].meaning = meaning;
    }
  }

  void CheckAllUsed() const { ATTENDANT_CHECK(limits_used_ == rules_.limits.size()); }

 private:
  Field Compile(const FieldDescriptor& descriptor, int& once) {
    Field field{.kind = KindOf(descriptor),
                .repeated = descriptor.is_repeated(),
                .element_bytes = ElementBytes(descriptor),
                .name = descriptor.full_name().substr(descriptor.file()->package().size() + 1)};
    const bool object =
        field.kind == WireSchema::Kind::kBytes || field.kind == WireSchema::Kind::kMessage;
    if (field.kind == WireSchema::Kind::kMessage)
      field.message = &Compile(*descriptor.message_type());
    if (!field.repeated) {
      if (object) field.place = once++;
      return field;
    }
    const auto limit =
        std::find_if(rules_.limits.begin(), rules_.limits.end(),
                     [&](const FieldLimit& each) { return each.field == descriptor.full_name(); });
    const bool limited = limit != rules_.limits.end();
    if (limited) ++limits_used_;
    if (!limited && !object) return field;  // numbers take no more than in proportion
    field.limit = limited ? limit->elements : kMaxElements;
    field.place = counters_++;
    ATTENDANT_CHECK(counters_ <= static_cast<int>(kMaxCounters));
    return field;
  }

  WireSchema& schema_;
  const WireRules& rules_;
  int counters_ = 0;
  size_t limits_used_ = 0;
};

WireSchema::WireSchema(const Descriptor& type, const WireRules& rules) : type_(type.full_name()) {
  Compiler compiler(*this, rules);
  compiler.Compile(type);
  compiler.CheckAllUsed();
  Message& message = *messages_.at(&type);
  compiler.MarkNamed(type, message);
  message_ = &message;
  message_bytes_ = MessageBytes(type);
}

}  // namespace attendant
