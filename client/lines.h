// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <istream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

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

}  // namespace attendant::client
