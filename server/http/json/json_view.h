// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// A value inside a JsonText, which it views. Cheap to copy.
class JsonView {
 public:
  enum class Kind { kNull, kBool, kInteger, kNumber, kString, kArray, kObject };

  Kind kind() const;
  // "a string", for errors.
  absl::string_view kind_name() const;

  // REQUIRES: the value is of that kind. An integer has neither fraction nor exponent and fits in
  // 64 bits.
  bool Bool() const;
  int64_t Integer() const;
  double Number() const;  // an integer too
  absl::string_view String() const;

  // REQUIRES: an array. `visit` ends the loop with an error.
  using Visit = absl::FunctionRef<absl::Status(JsonView element)>;
  absl::Status ForEach(Visit visit) const;
  size_t size() const;  // of an array; at most 2^24 - 1

  // REQUIRES: an object.
  using VisitField = absl::FunctionRef<absl::Status(absl::string_view name, JsonView value)>;
  absl::Status ForEachField(VisitField visit) const;

  // A field of this object; nothing where it is absent or null, or the value no object. Of several
  // with the same name it is the last, as nearly all parsers of JSON take it.
  std::optional<JsonView> Find(absl::string_view field) const;

  // Reads a field with a check of its type. Leaves `value` as it is when the field is absent.
  // INVALID_ARGUMENT names the field and both types.
  absl::Status Read(absl::string_view field, bool& value) const;
  absl::Status Read(absl::string_view field, int64_t& value) const;
  absl::Status Read(absl::string_view field, std::string& value) const;
  template <typename T>
  absl::Status Read(absl::string_view field, std::optional<T>& value) const {
    if (!Find(field).has_value()) return absl::OkStatus();
    return Read(field, value.emplace());
  }

 private:
  friend class JsonText;
  struct Access;

  JsonView() = default;

  static constexpr size_t kElementBytes = 16;
  alignas(void*) unsigned char element_[kElementBytes];  // simdjson's view of it
};

// "field must be a string, not a number"
absl::Status WrongJsonType(absl::string_view field, absl::string_view expected, JsonView value);

// A parsed JSON text, in UTF-8, at most kMaxDepth deep. Immutable.
class JsonText {
 public:
  static constexpr int64_t kMaxDepth = 32;

  // INVALID_ARGUMENT for text that is not JSON, or too deep. Takes the text. A byte order mark
  // before the JSON counts for nothing.
  static absl::StatusOr<JsonText> Parse(std::string text);
  // An upper bound of the memory that Parse takes beside the text, with a copy of each value that a
  // reader makes. This function takes no memory.
  static int64_t MemoryBytes(absl::string_view text);
  // The largest MemoryBytes of any text of `text_bytes` bytes.
  static int64_t MostMemoryBytes(int64_t text_bytes);

  JsonText(JsonText&&) noexcept;
  JsonText& operator=(JsonText&&) noexcept;
  ~JsonText();

  JsonView root() const;

 private:
  struct Impl;
  explicit JsonText(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant
