// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/request_head.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/connection/http_message.h"
#include "server/http/connection/request_target.h"

namespace attendant {
namespace {

auto IsNamed(absl::string_view name) {
  return [name](const auto& field) { return field.first == name; };
}

}  // namespace

void RequestHead::Add(absl::string_view name, absl::string_view value) {
  fields_.emplace_back(absl::AsciiStrToLower(name), value);
}

std::optional<absl::string_view> RequestHead::Find(absl::string_view name) const {
  if (Count(name) != 1) return std::nullopt;
  return std::find_if(fields_.begin(), fields_.end(), IsNamed(name))->second;
}

size_t RequestHead::Count(absl::string_view name) const {
  return static_cast<size_t>(std::count_if(fields_.begin(), fields_.end(), IsNamed(name)));
}

std::optional<HttpFailure> RequestHead::RepeatedHeader(
    std::span<const absl::string_view> single) const {
  const auto repeats = [this](absl::string_view name) { return Repeats(name); };
  constexpr absl::string_view kCoding = "content-encoding";
  const auto found = std::find_if(single.begin(), single.end(), repeats);
  if (found == single.end() && !Repeats(kCoding)) return std::nullopt;
  return FailureOf(absl::InvalidArgumentError(
      absl::StrCat("the header ", found == single.end() ? kCoding : *found, " comes twice")));
}

bool RequestHead::HasFitHost() const {
  const size_t hosts = Count("host");
  if (hosts == 0) return line_.http_1_0;
  return hosts == 1 && IsHostValue(*Find("host"));
}

std::optional<HttpFailure> RequestHead::UnfitTransfer() const {
  constexpr absl::string_view kName = "transfer-encoding";
  if (Count(kName) == 0) return std::nullopt;
  return attendant::UnfitTransfer(Find(kName).value_or("several headers"), line_.http_1_0);
}

bool RequestHead::WaitsForContinue() const {
  return !line_.http_1_0 && absl::EqualsIgnoreCase(Find("expect").value_or(""), "100-continue");
}

}  // namespace attendant
