// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace attendant {

// Rewrites the integers beyond 64 bits of a JSON text, which simdjson refuses: it ends each with an
// exponent, "e2" in place of its last two digits. A text that is not JSON is none after it either.
// False if it has no such integer.
bool WidenIntegers(std::string& json);

}  // namespace attendant
