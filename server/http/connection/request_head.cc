// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/request_head.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "server/http/connection/http_message.h"

namespace attendant {

void RequestHead::Add(absl::string_view name, absl::string_view value) {
  fields_.emplace_back(absl::AsciiStrToLower(name), value);
}

std::optional<absl::string_view> RequestHead::Find(absl::string_view name) const {
  const auto is_named = [name](const auto& field) { return field.first == name; };
  const auto found = std::find_if(fields_.begin(), fields_.end(), is_named);
  if (found == fields_.end()) return std::nullopt;
  if (std::any_of(found + 1, fields_.end(), is_named)) return std::nullopt;
  return found->second;
}

std::optional<HttpFailure> RequestHead::UnfitTransfer() const {
  constexpr absl::string_view kName = "transfer-encoding";
  const bool sent = std::any_of(fields_.begin(), fields_.end(),
                                [kName](const auto& field) { return field.first == kName; });
  if (!sent) return std::nullopt;
  return attendant::UnfitTransfer(Find(kName).value_or("several headers"), http_1_0_);
}

bool RequestHead::WaitsForContinue() const {
  return !http_1_0_ && absl::EqualsIgnoreCase(Find("expect").value_or(""), "100-continue");
}

}  // namespace attendant
