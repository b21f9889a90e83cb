// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/chat_template/chat_value.h"

namespace attendant::chat {

// The arguments of a filter: their values, and their names, empty for one without.
struct Arguments {
  std::vector<Value> values;
  std::vector<std::string> names;
};

// A filter of the subset on `value`. Errors are those of chat_value.h, and UNIMPLEMENTED for
// another filter, or for arguments that it does not take.
absl::StatusOr<Value> ApplyFilter(absl::string_view name, Value value, const Arguments& arguments);

}  // namespace attendant::chat
