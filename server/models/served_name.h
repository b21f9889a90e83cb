// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/heads/head.h"

namespace attendant {

// The names that KServe clients know a model by: NAME, NAME.ids, NAME.encoder, NAME.scores of a
// classifier, and NAME.sparse, NAME.masks, NAME.tokens and NAME.multi_vectors of heads on tokens.
enum class ServedName { kText, kIds, kEncoder, kScores, kSparse, kMasks, kTokens, kMultiVectors };
inline constexpr int kNumServedNames = 8;

// The task whose result has this name; unset: the name belongs to no head on tokens.
std::optional<TaskKind> TaskOf(ServedName kind);

// "minilm.ids" <-> {"minilm", kIds}. The part before the suffix views `name`.
std::pair<absl::string_view, ServedName> SplitServedName(absl::string_view name);
std::string JoinServedName(absl::string_view model, ServedName kind);

// INVALID_ARGUMENT for a name that cannot be served. A name is a metric label, a health service, a
// folder of the repository and a part of KServe names: 1 to 128 letters, digits, '_', '-' and '.',
// not '.' first, without a suffix of KServe at its end, and not kAttentionName.
absl::Status CheckModelName(absl::string_view name);

}  // namespace attendant
