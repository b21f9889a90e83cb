// SPDX-License-Identifier: Apache-2.0
#include "server/http/json/big_integers.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

// The index behind the string that begins at `start`.
size_t EndOfString(absl::string_view json, size_t start) {
  size_t i = start + 1;
  while (i < json.size() && json[i] != '"') i += json[i] == '\\' ? 2 : 1;
  return i + 1;
}

bool IsBeyond64Bits(absl::string_view number) {
  absl::string_view digits = number;
  absl::ConsumePrefix(&digits, "-");
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) {
    return false;
  }
  int64_t signed_value = 0;
  uint64_t unsigned_value = 0;
  return !absl::SimpleAtoi(number, &signed_value) && !absl::SimpleAtoi(number, &unsigned_value);
}

}  // namespace

bool WidenIntegers(std::string& json) {
  bool found = false;
  for (size_t i = 0; i < json.size();) {
    if (json[i] == '"') {
      i = EndOfString(json, i);
    } else if (json[i] == '-' || absl::ascii_isdigit(static_cast<unsigned char>(json[i]))) {
      const size_t end = std::min(json.find_first_not_of("+-.0123456789Ee", i), json.size());
      if (IsBeyond64Bits(absl::string_view(json).substr(i, end - i))) {
        json[end - 2] = 'e';
        json[end - 1] = '2';
        found = true;
      }
      i = end;
    } else {
      ++i;
    }
  }
  return found;
}

}  // namespace attendant
