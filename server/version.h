// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace attendant {

// The project's version in CMakeLists.txt; the build passes it in.
inline constexpr char kVersion[] = ATTENDANT_VERSION;

}  // namespace attendant
