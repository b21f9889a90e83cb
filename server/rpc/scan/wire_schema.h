// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace attendant {

// A message has at most so many elements in each repeated field of strings or messages that has no
// limit of its own, and so many fields that its type does not know.
inline constexpr int64_t kMaxElements = 64;
inline constexpr int64_t kMaxUnknownFields = 64;

// At most `elements` in all of a request's fields of this name together.
struct FieldLimit {
  std::string field;  // full: "attendant.v1.Sequences.sequences"
  int64_t elements = 0;
};

// A protocol's description of one of its request messages.
struct WireRules {
  std::vector<FieldLimit> limits = {};
  // String fields of the message itself, which a scan hands out; empty: it has none.
  std::string id_field = {};
  std::string model_field = {};
};

// The wire form of one message type, compiled from its descriptor: what a scan needs to know of
// each field. Immutable.
class WireSchema {
 public:
  enum class Kind : uint8_t { kUnknown, kVarint, kFixed32, kFixed64, kBytes, kMessage };
  enum class Meaning : uint8_t { kNone, kId, kModel };
  struct Message;

  struct Field {
    Kind kind = Kind::kUnknown;
    Meaning meaning = Meaning::kNone;
    bool repeated = false;
    // Of a repeated field: its place among the counters, -1 without a limit. Of any other field: a
    // bit of a set of fields that came.
    int place = -1;
    int64_t limit = 0;
    int64_t element_bytes = 0;  // in memory, beside what a string or message holds
    const Message* message = nullptr;
    std::string name;  // "Sequences.sequences"
  };

  struct Message {
    std::vector<Field> fields;  // by number

    const Field& Find(uint32_t number) const {
      static const Field unknown;
      return number < fields.size() ? fields[number] : unknown;
    }
  };

  static constexpr size_t kMaxCounters = 32;

  // REQUIRES: no message contains itself, field numbers are below 256, `rules` name fields that are
  // there, at most kMaxCounters repeated fields have limits.
  explicit WireSchema(const google::protobuf::Descriptor& type, const WireRules& rules = {});
  WireSchema(const WireSchema&) = delete;
  WireSchema& operator=(const WireSchema&) = delete;

  const std::string& type() const { return type_; }  // "attendant.v1.EncodeRequest"
  const Message& message() const { return *message_; }
  int64_t message_bytes() const { return message_bytes_; }  // of an empty one, in memory

 private:
  class Compiler;

  const std::string type_;
  absl::flat_hash_map<const google::protobuf::Descriptor*, std::unique_ptr<Message>> messages_;
  const Message* message_ = nullptr;
  int64_t message_bytes_ = 0;
};

// The schema of messages of which no more than their type is to be known.
template <typename M>
const WireSchema& PlainSchema() {
  static const WireSchema& schema = *new WireSchema(*M::descriptor());
  return schema;
}

}  // namespace attendant
