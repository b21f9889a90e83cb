// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "kernels/core/quote.h"

namespace attendant {

// A name that came out of a file, as every error of this folder shows it.
inline std::string Quoted(absl::string_view name) { return Quote(name, '`', 100); }

}  // namespace attendant
