// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/utf8.h"

namespace attendant::client {

// Four times the largest message that a server takes by default. /dev/full has no end of a line.
inline constexpr size_t kMaxLineBytes = size_t{64} << 20;

// Reads the next line, without its \n. False after the last one, and where `in` cannot be read any
// further: in.bad() tells. FAILED_PRECONDITION: the line "is longer than 67108864 bytes".
inline absl::StatusOr<bool> NextLine(std::istream& in, std::string& line) {
  std::array<char, 4096> part;
  line.clear();
  while (in.getline(part.data(), part.size()), in.gcount() > 0) {
    const bool has_end = in.good();  // a '\n' was read, and is counted
    line.append(part.data(), static_cast<size_t>(in.gcount()) - (has_end ? 1 : 0));
    if (line.size() > kMaxLineBytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("is longer than ", kMaxLineBytes, " bytes"));
    }
    if (has_end || in.bad()) return has_end;
    if (in.eof()) return true;
    in.clear();  // the part is full
  }
  return false;
}

// NextLine for a text file: leaves out the \r of a line's end, and the byte order mark that may
// stand before the first line, `number` 1.
inline absl::StatusOr<bool> NextTextLine(std::istream& in, int64_t number, std::string& line) {
  absl::StatusOr<bool> found = NextLine(in, line);
  if (number == 1 && absl::StartsWith(line, kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return found;
}

}  // namespace attendant::client
