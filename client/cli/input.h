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

// Gives every text to `use`, in order, until that fails: the arguments; where an argument is a lone
// -, the lines of standard input; then the lines of `file` ("" for none, - for standard input).
// With neither arguments nor a file, the lines of standard input, unless that is a terminal. A
// line's end may be \n or \r\n.
absl::Status ForEachText(std::span<const std::string> arguments, const std::string& file, Io& io,
                         const std::function<absl::Status(std::string)>& use);

// "101,7592,102" -> ids. `mask`, "1,1,0", may be empty. Errors name the flag.
absl::StatusOr<TokenIds> ParseIds(absl::string_view ids, absl::string_view mask);

}  // namespace attendant::client
