// SPDX-License-Identifier: Apache-2.0
#include "client/flags/flag_parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace attendant {
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

std::string HelpLine(const CLI::Option& option, const std::string& range) {
  const std::string unit = option.get_type_name();
  const std::string left = absl::StrCat("  ", option.get_name(), unit.empty() ? "" : " ", unit);
  std::vector<std::string> notes;
  if (!range.empty()) notes.push_back(range);
  const std::string default_text = option.get_default_str();
  if (!default_text.empty()) notes.push_back(absl::StrCat("default ", default_text));
  std::string help = option.get_description();
  if (!notes.empty()) absl::StrAppend(&help, " (", absl::StrJoin(notes, ", "), ")");
  return absl::StrCat(left,
                      left.size() + 2 > kHelpIndent
                          ? absl::StrCat("\n", std::string(kHelpIndent, ' '))
                          : std::string(kHelpIndent - left.size(), ' '),
                      Wrap(help), "\n");
}

std::string MarkdownRow(const CLI::Option& option, const std::string& range) {
  const auto code = [](const std::string& text) {
    return text.empty() ? "" : absl::StrCat("`", absl::StrReplaceAll(text, {{"|", "\\|"}}), "`");
  };
  const std::string unit = option.get_type_name();
  return absl::StrCat("| ", code(absl::StrCat(option.get_name(), unit.empty() ? "" : " ", unit)),
                      " | ", code(option.get_default_str()), " | ", range, " | ",
                      absl::StrReplaceAll(option.get_description(), {{"|", "\\|"}}), " |\n");
}

// The flags of each section, in the order in which they were added.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& app, const std::string& section) {
  return app.get_options(
      [&section](const CLI::Option* option) { return option->get_group() == section; });
}

// As CLI11 takes arguments: the last one first. For CLI11, --name= takes its value from the next
// argument; here the value is empty.
std::vector<std::string> Reversed(const CLI::App& app, std::span<const std::string> args) {
  std::vector<std::string> out;
  bool flags_end = false;
  for (const std::string& arg : args) {
    flags_end = flags_end || arg == "--";
    const CLI::Option* option = !flags_end && absl::EndsWith(arg, "=")
                                    ? app.get_option_no_throw(arg.substr(0, arg.size() - 1))
                                    : nullptr;
    const bool empty = option != nullptr && !option->get_type_name().empty();
    out.push_back(empty ? option->get_name() : arg);
    if (empty) out.emplace_back();
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

FlagParser::FlagParser() : app_(std::make_unique<CLI::App>()) {
  app_->set_help_flag();
  app_->allow_extras();  // Parse tells arguments from unknown flags
}

FlagParser::~FlagParser() = default;

void FlagParser::AddFlag(const Flag& flag, Reader read) {
  const std::string name = absl::StrCat("--", flag.name);
  CLI::Option* option = app_->add_option(
      name,
      [name, read = std::move(read)](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) {
          const std::string problem = read(text);
          if (!problem.empty()) {
            throw CLI::ValidationError(absl::StrCat(name, " cannot be ", problem));
          }
        }
        return true;
      },
      flag.help);
  option->group(section_)->type_name(std::string(flag.unit))->default_str(flag.default_text);
  option->multi_option_policy(flag.repeated ? CLI::MultiOptionPolicy::TakeAll
                                            : CLI::MultiOptionPolicy::TakeLast);
  // A switch is set while CLI11 still parses, so that --help counts though another flag is wrong.
  if (flag.unit.empty()) option->expected(0)->trigger_on_parse();
}

void FlagParser::AddTimeout(absl::string_view name, absl::Duration* value, absl::string_view help) {
  static constexpr char kRange[] = "above 0";
  ranges_[absl::StrCat("--", name)] = kRange;
  AddFlag({name, "DURATION", help, absl::UnparseFlag<absl::Duration>(*value)},
          [value](const std::string& text) {
            std::string problem = Read(text, value);
            if (problem.empty() && *value <= absl::ZeroDuration()) {
              problem = absl::StrCat(absl::FormatDuration(*value), ": it must be ", kRange);
            }
            return problem;
          });
}

void FlagParser::AddSwitch(absl::string_view name, bool* value, absl::string_view help) {
  AddFlag({name, "", help, ""}, [value](const std::string& text) { return Read(text, value); });
}

void FlagParser::AddRepeated(absl::string_view name, std::vector<std::string>* values,
                             absl::string_view unit, absl::string_view help) {
  Flag flag(name, unit, help, "");
  flag.repeated = true;
  AddFlag(flag, [values](const std::string& text) {
    values->push_back(text);
    return "";
  });
}

void FlagParser::AddWords(Flag flag, const std::vector<std::string>& words,
                          std::function<void(size_t)> choose) {
  const std::string unit = absl::StrJoin(words, "|");
  flag.unit = unit;
  AddFlag(flag, [words, choose = std::move(choose)](const std::string& text) -> std::string {
    const auto found = std::find(words.begin(), words.end(), text);
    if (found == words.end()) {
      return absl::StrCat("'", text, "': it is one of ", absl::StrJoin(words, ", "));
    }
    choose(static_cast<size_t>(found - words.begin()));
    return "";
  });
}

void FlagParser::AddChoice(absl::string_view name, std::string* value,
                           const std::vector<std::string>& words, absl::string_view help) {
  AddWords({name, "", help, *value}, words, [value, words](size_t i) { *value = words[i]; });
}

absl::StatusOr<std::vector<std::string>> FlagParser::Parse(std::span<const std::string> args) {
  try {
    app_->parse(Reversed(*app_, args));
  } catch (const CLI::ArgumentMismatch& error) {  // "--name: 1 required UNIT missing"
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(error.what(), absl::MaxSplits(':', 1));
    return absl::InvalidArgumentError(absl::StrCat(
        parts.first, " needs a value: ", app_->get_option(parts.first)->get_type_name()));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  std::vector<std::string> arguments;
  bool flags_end = false;
  for (const std::string& rest : app_->remaining()) {
    if (!flags_end && rest == "--") {
      flags_end = true;
    } else if (!flags_end && rest != "-" && absl::StartsWith(rest, "-")) {
      const std::pair<std::string, std::string> parts =
          absl::StrSplit(rest, absl::MaxSplits('=', 1));
      return absl::InvalidArgumentError(
          absl::StrCat("there is no flag ", parts.first,
                       " (arguments that begin with - stand after a lone --)"));
    } else {
      arguments.push_back(rest);
    }
  }
  return arguments;
}

std::string FlagParser::RangeOf(const CLI::Option& option) const {
  const auto found = ranges_.find(option.get_name());
  return found == ranges_.end() ? "" : found->second;
}

std::string FlagParser::Help() const {
  std::string text;
  for (const std::string& section : app_->get_groups()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", section, ":\n");
    for (const CLI::Option* option : OptionsOf(*app_, section)) {
      absl::StrAppend(&text, HelpLine(*option, RangeOf(*option)));
    }
  }
  return text;
}

std::string FlagParser::Markdown(absl::string_view heading) const {
  std::string text;
  for (const std::string& section : app_->get_groups()) {
    absl::StrAppend(&text, "\n", heading, " ", section,
                    "\n\n| flag | default | range | meaning |\n|---|---|---|---|\n");
    for (const CLI::Option* option : OptionsOf(*app_, section)) {
      absl::StrAppend(&text, MarkdownRow(*option, RangeOf(*option)));
    }
  }
  return text;
}

}  // namespace attendant
