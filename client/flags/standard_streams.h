// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace attendant {

// Opens /dev/null for each standard stream that is closed: else the next file or connection gets
// its number, and error messages with it. Reading and writing there still fail. Called first in
// main.
void ReserveStandardStreams();

}  // namespace attendant
