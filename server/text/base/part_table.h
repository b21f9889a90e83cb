// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/text/base/json_fields.h"
#include "server/text/unicode/readable.h"

namespace attendant {

// A type of part of a tokenizer.json, and the function that reads it.
template <typename Part>
struct PartKind {
  absl::string_view type;
  Part (*read)(const JsonFields& fields);
};

inline absl::Status UnsupportedPart(absl::string_view part, absl::string_view found,
                                    absl::string_view supported) {
  return absl::UnimplementedError(
      absl::StrCat(part, " ", ReadableName(found), " is not supported; supported: ", supported));
}

// Reads a part by its type. UNIMPLEMENTED, naming all types of `kinds`, for another one; `part`
// stands in that error.
template <typename Part>
Part ReadPart(const JsonFields& fields, absl::string_view part, absl::string_view type,
              absl::Span<const PartKind<Part>> kinds) {
  std::string types;
  for (const PartKind<Part>& kind : kinds) {
    if (kind.type == type) return kind.read(fields);
    absl::StrAppend(&types, types.empty() ? "" : ", ", kind.type);
  }
  if (fields.ok()) fields.Fail(UnsupportedPart(part, type, types));
  return Part();
}

// The parts of a "Sequence", at most this many.
inline constexpr size_t kMaxPartsInSequence = 64;

template <typename Part>
std::vector<Part> ReadPartSequence(const JsonFields& fields, absl::string_view list,
                                   Part (*read)(const JsonFields& fields)) {
  std::vector<Part> parts;
  const std::vector<JsonFields> elements = fields.Objects(list);
  if (elements.size() > kMaxPartsInSequence) {
    fields.Fail(
        list, absl::StrCat("has ", elements.size(), " parts, the limit is ", kMaxPartsInSequence));
    return parts;
  }
  for (const JsonFields& element : elements) {
    Part part = read(element);
    if (!fields.ok()) break;
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace attendant
