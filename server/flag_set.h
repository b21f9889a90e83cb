// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/flags/marshalling.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Command line flags that write into variables: --name=value, --name value, and --name for a bool.
// Abseil's parser ends the process with 1 on a bad flag and keeps only the last of a repeated one;
// this one returns an error and lets flags repeat. Thread-compatible.
class FlagSet {
 public:
  // `target` holds the default and must outlive the set.
  template <typename T>
  void Add(const std::string& name, T& target, const std::string& help) {
    flags_.push_back({name, help, absl::UnparseFlag(target), std::is_same_v<T, bool>,
                      [&target](absl::string_view text, std::string& error) {
                        return absl::ParseFlag(text, &target, &error);
                      }});
  }
  // Every use, and every part between commas, adds to `target`.
  void AddList(const std::string& name, std::vector<std::string>& target, const std::string& help);

  // INVALID_ARGUMENT for an unknown flag, a value that cannot be read, or a word that is no flag.
  absl::Status Parse(std::span<const std::string> arguments) const;

  // One line or two for each flag, with its default.
  std::string Help() const;

 private:
  struct Flag {
    std::string name;
    std::string help;
    std::string default_value;
    bool is_bool;
    std::function<bool(absl::string_view text, std::string& error)> parse;
  };

  const Flag* Find(absl::string_view name) const;

  std::vector<Flag> flags_;
};

}  // namespace attendant
