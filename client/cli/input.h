// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/command.h"
#include "client/client.h"

namespace attendant::client {

// Calls `use` with every text, in order, until one call fails. Texts are the arguments, then the
// lines of `file` ("" is no file). A lone - as an argument or file stands for the lines of standard
// input, and so does having neither, unless standard input is a terminal. A line ends in \n or
// \r\n; a byte order mark before the first one is no text. FAILED_PRECONDITION for a file that
// cannot be read, for a line of more than kMaxLineBytes and for text that is not UTF-8.
absl::Status ForEachText(std::span<const std::string> arguments, const std::string& file, Io& io,
                         const std::function<absl::Status(std::string)>& use);

// FAILED_PRECONDITION, with the flag's name, if its value is not UTF-8.
absl::Status CheckFlagUtf8(absl::string_view flag, absl::string_view value);

// "101,7592,102" -> ids. `mask`, "1,1,0", may be empty. FAILED_PRECONDITION names the flag.
absl::StatusOr<TokenIds> ParseIds(absl::string_view ids, absl::string_view mask);

}  // namespace attendant::client
