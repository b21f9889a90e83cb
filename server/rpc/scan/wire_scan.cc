// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/scan/wire_scan.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/requests/request_message.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

using google::protobuf::internal::WireFormatLite;
using Kind = WireSchema::Kind;
using Meaning = WireSchema::Meaning;
using Field = WireSchema::Field;

// An unknown field is kept as an object, in a list that doubles, and a string may be its value.
constexpr int64_t kUnknownFieldBytes = 128;

constexpr uint8_t kLastOfVarint = 0x80;  // a byte below it ends a number

class WireScanner {
 public:
  WireScanner(const WireSchema& schema, google::protobuf::io::ZeroCopyInputStream& bytes,
              WireSummary& summary)
      : schema_(schema), input_(&bytes), summary_(summary) {}

  absl::Status Scan(int64_t size) {
    if (size > std::numeric_limits<int>::max()) return Malformed("is too long");
    input_.PushLimit(static_cast<int>(size));
    summary_.memory_bytes = schema_.message_bytes();
    ScanMessage(schema_.message());
    return error_;
  }

 private:
  // Each of these returns false, and sets the error, when the message is refused.
  bool ScanMessage(const WireSchema::Message& message) {
    uint64_t came = 0;  // fields that may come once
    while (input_.BytesUntilLimit() > 0) {
      field_start_ = input_.CurrentPosition();
      const uint32_t tag = input_.ReadTagNoLastTag();
      const auto number = static_cast<uint32_t>(WireFormatLite::GetTagFieldNumber(tag));
      if (number == 0) return Fail(Malformed("has a field without a number"));
      if (!ScanField(message.Find(number), WireFormatLite::GetTagWireType(tag), came)) return false;
    }
    return true;
  }

  bool ScanField(const Field& field, WireFormatLite::WireType wire, uint64_t& came) {
    switch (wire) {
      case WireFormatLite::WIRETYPE_VARINT: {
        uint64_t value = 0;
        if (!input_.ReadVarint64(&value)) return FailCutOff();
        return CountNumber(field, Kind::kVarint);
      }
      case WireFormatLite::WIRETYPE_FIXED32:
        return (input_.Skip(4) || FailCutOff()) && CountNumber(field, Kind::kFixed32);
      case WireFormatLite::WIRETYPE_FIXED64:
        return (input_.Skip(8) || FailCutOff()) && CountNumber(field, Kind::kFixed64);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return ScanLengthDelimited(field, came);
      default:
        return Fail(Malformed("has a group"));
    }
  }

  bool ScanLengthDelimited(const Field& field, uint64_t& came) {
    uint32_t length = 0;
    if (!input_.ReadVarint32(&length) || length > static_cast<uint32_t>(input_.BytesUntilLimit())) {
      return FailCutOff();
    }
    const int bytes = static_cast<int>(length);
    switch (field.kind) {
      case Kind::kUnknown:
        return CountUnknown(bytes) && input_.Skip(bytes);
      case Kind::kBytes:
        summary_.memory_bytes += bytes;
        return CountObject(field, came) && ReadString(field, bytes);
      case Kind::kMessage: {
        if (!CountObject(field, came)) return false;
        const auto outer = input_.PushLimit(bytes);
        const bool scanned = ScanMessage(*field.message);
        input_.PopLimit(outer);
        return scanned;
      }
      case Kind::kVarint:
        return field.repeated ? ScanPackedVarints(field, bytes)
                              : CountUnknown(bytes) && input_.Skip(bytes);
      case Kind::kFixed32:
      case Kind::kFixed64: {
        if (!field.repeated) return CountUnknown(bytes) && input_.Skip(bytes);
        const int value_bytes = field.kind == Kind::kFixed32 ? 4 : 8;
        if (bytes % value_bytes != 0) return FailCutOff();
        return CountElements(field, bytes / value_bytes) && input_.Skip(bytes);
      }
    }
    return false;
  }

  bool ScanPackedVarints(const Field& field, int bytes) {
    int64_t numbers = 0;
    while (bytes > 0) {
      const void* data = nullptr;
      int size = 0;
      if (!input_.GetDirectBufferPointer(&data, &size)) return FailCutOff();
      size = std::min(size, bytes);
      const auto* begin = static_cast<const uint8_t*>(data);
      numbers += std::count_if(begin, begin + size, [](uint8_t b) { return b < kLastOfVarint; });
      bytes -= size;
      const bool whole = bytes > 0 || begin[size - 1] < kLastOfVarint;
      if (!whole || !input_.Skip(size)) return FailCutOff();
    }
    return CountElements(field, numbers);
  }

  // Fields that a summary names are read, others skipped.
  bool ReadString(const Field& field, int bytes) {
    if (field.meaning == Meaning::kNone) return input_.Skip(bytes);
    const int kept = std::min(bytes, static_cast<int>(kMaxIdBytes));
    std::string& text = field.meaning == Meaning::kId ? summary_.id : summary_.model;
    if (!input_.ReadString(&text, kept) || !input_.Skip(bytes - kept)) return FailCutOff();
    if (field.meaning == Meaning::kModel) return true;
    if (kept < bytes || FindInvalidUtf8(text).has_value()) text.clear();
    if (kept == bytes) return true;
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("id has ", bytes, " bytes, the limit is ", kMaxIdBytes)));
  }

  bool CountNumber(const Field& field, Kind kind) {
    if (field.kind != kind) return CountUnknown(0);
    return !field.repeated || CountElements(field, 1);
  }

  bool CountObject(const Field& field, uint64_t& came) {
    if (field.repeated) return CountElements(field, 1);
    const uint64_t bit = uint64_t{1} << field.place;
    summary_.memory_bytes += field.element_bytes;
    if ((std::exchange(came, came | bit) & bit) == 0) return true;
    return Fail(absl::InvalidArgumentError(
        absl::StrCat(field.name, " comes twice in one message, it is not repeated")));
  }

  bool CountElements(const Field& field, int64_t elements) {
    summary_.memory_bytes += elements * field.element_bytes;
    if (field.place < 0) return true;
    int64_t& count = counters_[static_cast<size_t>(field.place)];
    count += elements;
    if (count <= field.limit) return true;
    return Fail(absl::InvalidArgumentError(
        absl::StrCat(field.name, " has more than ", field.limit, " elements")));
  }

  bool CountUnknown(int bytes) {
    summary_.memory_bytes += kUnknownFieldBytes + bytes;
    if (++unknown_ <= kMaxUnknownFields) return true;
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        schema_.type(), " has more than ", kMaxUnknownFields, " fields of unknown numbers")));
  }

  absl::Status Malformed(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("not a message of type ", schema_.type(),
                                                   ": it ", what, " at byte ", field_start_));
  }
  bool FailCutOff() { return Fail(Malformed("has a field that does not end inside it")); }
  bool Fail(absl::Status error) {
    error_ = std::move(error);
    return false;
  }

  const WireSchema& schema_;
  google::protobuf::io::CodedInputStream input_;
  WireSummary& summary_;
  absl::Status error_;
  std::array<int64_t, WireSchema::kMaxCounters> counters_{};
  int64_t unknown_ = 0;
  int field_start_ = 0;
};

}  // namespace

absl::Status ScanWire(const WireSchema& schema, int64_t size,
                      google::protobuf::io::ZeroCopyInputStream& bytes, WireSummary& summary) {
  return WireScanner(schema, bytes, summary).Scan(size);
}

}  // namespace attendant
