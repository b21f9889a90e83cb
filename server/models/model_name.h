// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// The endings that a protocol puts behind a model's name to name one of its outputs. A model's own
// name has none of them.
inline constexpr std::array<absl::string_view, 7> kReservedEndings = {
    ".ids", ".encoder", ".scores", ".sparse", ".masks", ".tokens", ".multi_vectors"};
constexpr bool IsReservedEnding(absl::string_view ending) {
  return std::find(kReservedEndings.begin(), kReservedEndings.end(), ending) !=
         kReservedEndings.end();
}

// INVALID_ARGUMENT for a name that cannot be served. A name is a metric label, a health service, a
// folder of the repository and a part of KServe names: 1 to 128 letters, digits, '_', '-' and '.',
// not '.' first, without a reserved ending, and not kAttentionName.
absl::Status CheckModelName(absl::string_view name);

}  // namespace attendant
