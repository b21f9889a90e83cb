// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/marshalling.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant::client {

// The flags of one command. Values are written as for the server's flags
// (absl/flags/marshalling.h): durations are 250ms or 1m30s. Both --flag=value and --flag value are
// read; -- ends the flags; whatever is no flag, a lone - included, is a positional argument and
// kept byte for byte.
class FlagSet {
 public:
  // The value before parsing is the default, and shown unless `help` itself tells of one. `value`
  // must outlive the set.
  template <typename T>
  void Add(absl::string_view name, T* value, absl::string_view argument, absl::string_view help) {
    flags_.push_back({.name = std::string(name),
                      .argument = std::string(argument),
                      .help = WithDefault(help, absl::UnparseFlag<T>(*value)),
                      .parse = [value](absl::string_view text, std::string* error) {
                        return absl::ParseFlag<T>(text, value, error);
                      }});
  }

  // --name sets `value`, and --name=false clears it.
  void AddSwitch(absl::string_view name, bool* value, absl::string_view help);

  // May be given several times.
  void AddRepeated(absl::string_view name, std::vector<std::string>* values,
                   absl::string_view argument, absl::string_view help);

  // One of a few words, each standing for a value of its own.
  template <typename T>
  void AddChoice(absl::string_view name, T* value,
                 const std::vector<std::pair<std::string, T>>& choices, absl::string_view help) {
    std::vector<std::string> words;
    for (const auto& [word, choice] : choices) words.push_back(word);
    AddWords(name, words, help, [value, choices](size_t i) { *value = choices[i].second; });
  }

  // Returns the positional arguments. INVALID_ARGUMENT names the flag and what is wrong with it.
  absl::Status Parse(std::span<const std::string> args, std::vector<std::string>* positional) const;

  // One or more lines for each flag, ending in a line break.
  std::string Help() const;

 private:
  struct Flag {
    std::string name;
    std::string argument;  // empty: a switch
    std::string help;
    std::function<bool(absl::string_view, std::string*)> parse;
  };

  static std::string WithDefault(absl::string_view help, absl::string_view value);
  void AddWords(absl::string_view name, const std::vector<std::string>& words,
                absl::string_view help, std::function<void(size_t)> choose);
  const Flag* Find(absl::string_view name) const;

  std::vector<Flag> flags_;
};

}  // namespace attendant::client
