// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/marshalling.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace attendant {

// The values that a number may have, both ends included.
template <typename T>
struct FlagRange {
  T low;
  T high = std::numeric_limits<T>::max();
};

// The flags of the server, or of one command of the client. CLI11 parses them. Only the source of
// this class includes CLI11, because that takes ten seconds to compile.
//
//   --name=value and --name value set a variable; --name and --name=false set a bool. The last use
//   of a flag wins. An argument is any text without a leading '-', a lone '-', and all that follows
//   a lone '--'.
//
// absl::ParseFlag reads the values: a duration is 250ms or 1m30s, and 010 is ten. The default of a
// flag is the value of its variable when the flag is added. Variables must outlive the parser.
// Thread-compatible.
class FlagParser {
 public:
  FlagParser();
  ~FlagParser();
  FlagParser(const FlagParser&) = delete;
  FlagParser& operator=(const FlagParser&) = delete;

  // Flags that follow stand under this title in Help() and Markdown().
  void Section(absl::string_view title) { section_ = std::string(title); }

  // `unit` names the value in the help: N, BYTES, FILE, DURATION.
  template <typename T>
  void Add(absl::string_view name, T* value, absl::string_view unit, absl::string_view help) {
    AddFlag({name, unit, help, absl::UnparseFlag<T>(*value)},
            [value](const std::string& text) { return Read(text, value); });
  }

  // A number; Parse refuses values out of the range.
  template <typename T>
  void AddNumber(absl::string_view name, T* value, absl::string_view unit, FlagRange<T> range,
                 absl::string_view help) {
    ranges_[absl::StrCat("--", name)] = RangeText(range);
    AddFlag({name, unit, help, absl::UnparseFlag<T>(*value)},
            [value, range](const std::string& text) {
              std::string problem = Read(text, value);
              if (problem.empty() && !(*value >= range.low && *value <= range.high)) {
                problem = absl::StrCat(*value, ": it must be ", RangeText(range));
              }
              return problem;
            });
  }

  // A duration above 0.
  void AddTimeout(absl::string_view name, absl::Duration* value, absl::string_view help);

  // False until it is given.
  void AddSwitch(absl::string_view name, bool* value, absl::string_view help);

  // Every use adds a value.
  void AddRepeated(absl::string_view name, std::vector<std::string>* values, absl::string_view unit,
                   absl::string_view help);

  // One of a few words. Each stands for a value; the default is the word of the current value.
  template <typename T>
  void AddChoice(absl::string_view name, T* value,
                 const std::vector<std::pair<std::string, T>>& choices, absl::string_view help) {
    std::vector<std::string> words;
    std::string default_word;
    for (const auto& [word, choice] : choices) {
      words.push_back(word);
      if (choice == *value) default_word = word;
    }
    AddWords({name, {}, help, default_word}, words,
             [value, choices](size_t i) { *value = choices[i].second; });
  }
  // The same for a string, which takes the word itself.
  void AddChoice(absl::string_view name, std::string* value, const std::vector<std::string>& words,
                 absl::string_view help);

  // Sets the variables and returns the arguments. INVALID_ARGUMENT names the flag, its value and
  // the values that it may have; some variables may be set by then.
  absl::StatusOr<std::vector<std::string>> Parse(std::span<const std::string> args);

  // The help text for a terminal: a line or more for each flag under its section, with unit, range
  // and default.
  std::string Help() const;

  // The reference page in Markdown: a table for each section, under a heading that starts with
  // `heading`.
  std::string Markdown(absl::string_view heading) const;

 private:
  struct Flag {
    absl::string_view name;
    absl::string_view unit;  // empty: a bool
    std::string help;
    std::string default_text;
    bool repeated = false;

    Flag(absl::string_view flag_name, absl::string_view flag_unit, absl::string_view flag_help,
         absl::string_view flag_default)
        : name(flag_name), unit(flag_unit), help(flag_help), default_text(flag_default) {}
  };
  // Sets the variable. Returns what is wrong with the text: "'x': it must be a number", or nothing.
  using Reader = std::function<std::string(const std::string& text)>;

  void AddFlag(const Flag& flag, Reader read);
  void AddWords(Flag flag, const std::vector<std::string>& words,
                std::function<void(size_t index)> choose);

  template <typename T>
  static std::string Read(const std::string& text, T* value) {
    std::string error;
    if (absl::ParseFlag<T>(text, value, &error)) return "";
    constexpr absl::string_view kExpected = std::same_as<T, bool>    ? "true or false"
                                            : std::integral<T>       ? "a whole number"
                                            : std::floating_point<T> ? "a number"
                                            : std::same_as<T, absl::Duration>
                                                ? "a duration such as 250ms or 1m30s"
                                                : "";
    return absl::StrCat("'", text, "': it must be ", kExpected);
  }

  std::string RangeOf(const CLI::Option& option) const;

  template <typename T>
  static std::string RangeText(FlagRange<T> range) {
    if (range.high == std::numeric_limits<T>::max()) return absl::StrCat("at least ", range.low);
    return absl::StrCat("from ", range.low, " to ", range.high);
  }

  std::unique_ptr<CLI::App> app_;
  std::map<std::string, std::string> ranges_;  // by name, with the dashes
  std::string section_ = "Flags";
};

}  // namespace attendant
