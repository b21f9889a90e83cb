// SPDX-License-Identifier: Apache-2.0
#include "server/models/served_name.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "server/models/attention_model.h"

namespace attendant {
namespace {

constexpr size_t kMaxNameBytes = 128;

struct Suffix {
  absl::string_view text;
  ServedName kind;
};
constexpr std::array<Suffix, 7> kSuffixes = {{{".ids", ServedName::kIds},
                                              {".encoder", ServedName::kEncoder},
                                              {".scores", ServedName::kScores},
                                              {".sparse", ServedName::kSparse},
                                              {".masks", ServedName::kMasks},
                                              {".tokens", ServedName::kTokens},
                                              {".multi_vectors", ServedName::kMultiVectors}}};

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

}  // namespace

std::optional<TaskKind> TaskOf(ServedName kind) {
  switch (kind) {
    case ServedName::kSparse:
      return TaskKind::kSparse;
    case ServedName::kMasks:
      return TaskKind::kFillMask;
    case ServedName::kTokens:
      return TaskKind::kTokenScores;
    case ServedName::kMultiVectors:
      return TaskKind::kMultiVector;
    case ServedName::kText:
    case ServedName::kIds:
    case ServedName::kEncoder:
    case ServedName::kScores:
      break;
  }
  return std::nullopt;
}

std::pair<absl::string_view, ServedName> SplitServedName(absl::string_view name) {
  for (const Suffix& suffix : kSuffixes) {
    if (absl::EndsWith(name, suffix.text)) {
      return {name.substr(0, name.size() - suffix.text.size()), suffix.kind};
    }
  }
  return {name, ServedName::kText};
}

std::string JoinServedName(absl::string_view model, ServedName kind) {
  for (const Suffix& suffix : kSuffixes) {
    if (kind == suffix.kind) return absl::StrCat(model, suffix.text);
  }
  return std::string(model);
}

absl::Status CheckModelName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name.front() == '.' ||
      !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model name ", Quote(name), " of ", name.size(), " bytes cannot be served: use 1 to ",
        kMaxNameBytes, " letters, digits, '_', '-' and '.', and not '.' first"));
  }
  if (name == kAttentionName) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model name ", Quote(name),
        " cannot be served: the attention operators that need no model are called so"));
  }
  if (SplitServedName(name).second != ServedName::kText) {
    return absl::InvalidArgumentError(
        absl::StrCat("model name ", Quote(name),
                     " cannot be served: to KServe clients a model's other outputs have the names ",
                     absl::StrJoin(kSuffixes, ", ", [](std::string* out, const Suffix& suffix) {
                       absl::StrAppend(out, "NAME", suffix.text);
                     })));
  }
  return absl::OkStatus();
}

}  // namespace attendant
