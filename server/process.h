// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace attendant {

// Sends spdlog's default logger to standard error: as lines of text, or, with "json", as one JSON
// object a line with time, level and message. `level` is one of --log_level's words.
void ConfigureLog(const std::string& format, const std::string& level);

// `text` between quotes, as JSON writes it. Bytes that are not ASCII stay as they are.
std::string JsonString(const std::string& text);

}  // namespace attendant
