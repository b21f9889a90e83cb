// SPDX-License-Identifier: Apache-2.0
#include "server/flag_set.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace attendant {

void FlagSet::AddList(const std::string& name, std::vector<std::string>& target,
                      const std::string& help) {
  flags_.push_back({name, help, "", false, [&target](absl::string_view text, std::string&) {
                      for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
                        target.emplace_back(part);
                      }
                      return true;
                    }});
}

const FlagSet::Flag* FlagSet::Find(absl::string_view name) const {
  for (const Flag& flag : flags_) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

absl::Status FlagSet::Parse(std::span<const std::string> arguments) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view argument = arguments[i];
    if (!absl::ConsumePrefix(&argument, "--")) {
      return absl::InvalidArgumentError(absl::StrCat("'", argument, "' is not a flag"));
    }
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    const Flag* flag = Find(parts.first);
    if (flag == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("there is no flag --", parts.first));
    }
    absl::string_view value = parts.second;
    if (argument.size() == parts.first.size()) {  // no '='
      if (!flag->is_bool && i + 1 == arguments.size()) {
        return absl::InvalidArgumentError(absl::StrCat("--", flag->name, " needs a value"));
      }
      value = flag->is_bool ? "true" : absl::string_view(arguments[++i]);
    }
    std::string error;
    if (!flag->parse(value, error)) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag->name, " cannot be '", value, "'",
                                                     error.empty() ? "" : ": ", error));
    }
  }
  return absl::OkStatus();
}

std::string FlagSet::Help() const {
  std::string help;
  for (const Flag& flag : flags_) {
    absl::StrAppend(&help, "  --", flag.name);
    if (!flag.is_bool && !flag.default_value.empty()) {
      absl::StrAppend(&help, " (", flag.default_value, ")");
    }
    absl::StrAppend(&help, "\n      ", flag.help, "\n");
  }
  return help;
}

}  // namespace attendant
