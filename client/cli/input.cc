// SPDX-License-Identifier: Apache-2.0
#include "client/cli/input.h"

#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/lines.h"
#include "client/utf8.h"
#include "client/wire.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr char kStandardInput[] = "standard input";

using TextUser = std::function<absl::Status(std::string)>;

// Refuses text that is not UTF-8; the error has the number of the text.
TextUser CheckUtf8(const TextUser& use) {
  return [use, number = 0](std::string text) mutable {
    ++number;
    const size_t at = FindInvalidUtf8(text);
    if (at == absl::string_view::npos) return use(std::move(text));
    return absl::FailedPreconditionError(
        absl::StrCat("text ", number, " is not valid UTF-8 at byte ", at));
  };
}

absl::Status ForEachLine(std::istream& in, const std::string& name, const TextUser& use) {
  std::string line;
  for (int64_t number = 1;; ++number) {
    const absl::StatusOr<bool> found = NextTextLine(in, number, line);
    if (!found.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("a line of ", name, " ", found.status().message()));
    }
    if (!*found) break;
    ATTENDANT_RETURN_IF_ERROR(use(std::exchange(line, {})));
  }
  if (!in.bad()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(name, " cannot be read to its end"));
}

absl::Status ForEachLineOfFile(const std::string& path, Io& io, const TextUser& use) {
  if (path == "-") return ForEachLine(io.in, kStandardInput, use);
  const std::string name = absl::StrCat("the file ", path);
  std::ifstream file(path, std::ios::binary);
  if (file && file.peek() != std::ifstream::traits_type::eof()) return ForEachLine(file, name, use);
  const bool is_empty = file.is_open() && !file.bad();
  return absl::FailedPreconditionError(
      absl::StrCat(name, is_empty ? " is empty" : " cannot be read"));
}

}  // namespace

absl::Status ForEachText(std::span<const std::string> arguments, const std::string& file, Io& io,
                         const TextUser& use_valid) {
  const TextUser use = CheckUtf8(use_valid);
  if (arguments.empty() && file.empty()) {
    if (!io.in_is_terminal) return ForEachLine(io.in, kStandardInput, use);
    return absl::FailedPreconditionError(
        "no texts: give them as arguments, in --file, or on standard input");
  }
  for (const std::string& argument : arguments) {
    ATTENDANT_RETURN_IF_ERROR(argument == "-" ? ForEachLine(io.in, kStandardInput, use)
                                              : use(argument));
  }
  return file.empty() ? absl::OkStatus() : ForEachLineOfFile(file, io, use);
}

absl::Status CheckFlagUtf8(absl::string_view flag, absl::string_view value) {
  const absl::Status valid = RequireUtf8(absl::StrCat("--", flag), value);
  return valid.ok() ? valid : absl::FailedPreconditionError(valid.message());
}

absl::StatusOr<TokenIds> ParseIds(absl::string_view ids, absl::string_view mask) {
  TokenIds sequence;
  for (absl::string_view part : absl::StrSplit(ids, ',')) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(part, &id)) {
      return absl::FailedPreconditionError(absl::StrCat("--ids: '", part, "' is not a token id"));
    }
    sequence.token_ids.push_back(id);
  }
  if (mask.empty()) return sequence;
  for (absl::string_view part : absl::StrSplit(mask, ',')) {
    if (part != "0" && part != "1") {
      return absl::FailedPreconditionError(absl::StrCat("--mask: '", part, "' is neither 0 nor 1"));
    }
    sequence.attention_mask.push_back(part == "1");
  }
  if (sequence.attention_mask.size() != sequence.token_ids.size()) {
    return absl::FailedPreconditionError(absl::StrCat("--mask has ", sequence.attention_mask.size(),
                                                      " values, its --ids has ",
                                                      sequence.token_ids.size()));
  }
  return sequence;
}

}  // namespace attendant::client
