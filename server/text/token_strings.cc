// SPDX-License-Identifier: Apache-2.0
#include "server/text/token_strings.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace attendant {

void TokenStrings::Add(int32_t id, absl::string_view token) { added_.emplace_back(id, token); }

void TokenStrings::Seal() {
  auto added = std::exchange(added_, {});
  std::stable_sort(added.begin(), added.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [id, token] : added) {
    if (!entries_.empty() && entries_.back().id == id) continue;
    strings_.append(token);
    entries_.push_back({id, strings_.size()});
  }
  entries_.shrink_to_fit();
  strings_.shrink_to_fit();
}

absl::string_view TokenStrings::Find(int32_t id) const {
  const auto entry = std::lower_bound(
      entries_.begin(), entries_.end(), id,
      [](const Entry& candidate, int32_t wanted) { return candidate.id < wanted; });
  if (entry == entries_.end() || entry->id != id) return {};
  const size_t begin = entry == entries_.begin() ? 0 : std::prev(entry)->end;
  return absl::string_view(strings_).substr(begin, entry->end - begin);
}

}  // namespace attendant
