// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// The names that KServe clients know a model by: NAME, NAME.ids and NAME.encoder.
enum class ServedName { kText, kIds, kEncoder };
inline constexpr int kNumServedNames = 3;

// "minilm.ids" <-> {"minilm", kIds}. The part before the suffix views `name`.
std::pair<absl::string_view, ServedName> SplitServedName(absl::string_view name);
std::string JoinServedName(absl::string_view model, ServedName kind);

// INVALID_ARGUMENT for a name that cannot be served. A name is a metric label, a health service, a
// folder of the repository and a part of KServe names: 1 to 128 letters, digits, '_', '-' and '.',
// not '.' first, with neither .ids nor .encoder at its end, and not kAttentionName.
absl::Status CheckModelName(absl::string_view name);

}  // namespace attendant
