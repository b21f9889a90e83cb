// SPDX-License-Identifier: Apache-2.0
#include "client/cli/flag_set.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace attendant::client {
namespace {

constexpr size_t kHelpWidth = 100;
constexpr size_t kHelpIndent = 28;

// Breaks `text` into lines that end before kHelpWidth when they begin at kHelpIndent.
std::string Wrap(absl::string_view text) {
  std::string out;
  size_t column = kHelpIndent;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column + 1 + word.size() > kHelpWidth) {
      absl::StrAppend(&out, "\n", std::string(kHelpIndent, ' '));
      column = kHelpIndent;
    } else if (!out.empty()) {
      absl::StrAppend(&out, " ");
      ++column;
    }
    absl::StrAppend(&out, word);
    column += word.size();
  }
  return out;
}

}  // namespace

std::string FlagSet::WithDefault(absl::string_view help, absl::string_view value) {
  if (value.empty() || absl::StrContains(help, "(default")) return std::string(help);
  return absl::StrCat(help, " (default ", value, ")");
}

void FlagSet::AddSwitch(absl::string_view name, bool* value, absl::string_view help) {
  Add(name, value, "", help);
  flags_.back().help = std::string(help);
}

void FlagSet::AddRepeated(absl::string_view name, std::vector<std::string>* values,
                          absl::string_view argument, absl::string_view help) {
  flags_.push_back({.name = std::string(name),
                    .argument = std::string(argument),
                    .help = std::string(help),
                    .parse = [values](absl::string_view text, std::string*) {
                      values->emplace_back(text);
                      return true;
                    }});
}

void FlagSet::AddWords(absl::string_view name, const std::vector<std::string>& words,
                       absl::string_view help, std::function<void(size_t)> choose) {
  const std::string all = absl::StrJoin(words, "|");
  flags_.push_back({.name = std::string(name),
                    .argument = all,
                    .help = std::string(help),
                    .parse = [words, all, choose](absl::string_view text, std::string* error) {
                      const auto found = std::find(words.begin(), words.end(), text);
                      if (found == words.end()) {
                        *error = absl::StrCat("must be one of ", all);
                        return false;
                      }
                      choose(static_cast<size_t>(found - words.begin()));
                      return true;
                    }});
}

const FlagSet::Flag* FlagSet::Find(absl::string_view name) const {
  const auto found = std::find_if(flags_.begin(), flags_.end(),
                                  [name](const Flag& flag) { return flag.name == name; });
  return found == flags_.end() ? nullptr : &*found;
}

absl::Status FlagSet::Parse(std::span<const std::string> args,
                            std::vector<std::string>* positional) const {
  for (size_t i = 0; i < args.size(); ++i) {
    absl::string_view arg = args[i];
    if (arg == "--") {
      positional->insert(positional->end(), args.begin() + static_cast<ptrdiff_t>(i) + 1,
                         args.end());
      return absl::OkStatus();
    }
    if (arg == "-" || !absl::StartsWith(arg, "-")) {
      positional->emplace_back(arg);
      continue;
    }
    const std::vector<absl::string_view> parts = absl::StrSplit(arg, absl::MaxSplits('=', 1));
    const Flag* flag = absl::StartsWith(arg, "--") ? Find(parts[0].substr(2)) : nullptr;
    if (flag == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown flag ", parts[0], " (put arguments that begin with - after a lone --)"));
    }
    absl::string_view value = "true";
    if (parts.size() == 2) {
      value = parts[1];
    } else if (!flag->argument.empty()) {
      if (++i == args.size()) {
        return absl::InvalidArgumentError(absl::StrCat(arg, " needs a value: ", flag->argument));
      }
      value = args[i];
    }
    std::string error;
    if (!flag->parse(value, &error)) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag->name, ": cannot read '", value,
                                                     "' as ", flag->argument,
                                                     error.empty() ? "" : ": ", error));
    }
  }
  return absl::OkStatus();
}

std::string FlagSet::Help() const {
  std::string out;
  for (const Flag& flag : flags_) {
    const std::string left =
        absl::StrCat("  --", flag.name, flag.argument.empty() ? "" : " ", flag.argument);
    absl::StrAppend(&out, left,
                    left.size() + 2 > kHelpIndent
                        ? absl::StrCat("\n", std::string(kHelpIndent, ' '))
                        : std::string(kHelpIndent - left.size(), ' '),
                    Wrap(flag.help), "\n");
  }
  return out;
}

}  // namespace attendant::client
