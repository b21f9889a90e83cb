// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/pattern_field.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/text/unicode/readable.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

std::optional<Pattern> ReadLiteral(const JsonFields& pattern) {
  const std::string text = pattern.String("String");
  if (text.empty()) pattern.Fail("String", "is empty");
  const auto characters = static_cast<size_t>(CountCharacters(text));
  if (characters > Pattern::kMaxItems) {
    pattern.Fail("String", absl::StrCat("has ", characters, " characters, the limit is ",
                                        Pattern::kMaxItems));
  }
  if (!pattern.ok()) return std::nullopt;
  return Pattern::Literal(text);
}

}  // namespace

std::optional<Pattern> ReadPattern(const JsonFields& fields) {
  const JsonFields pattern = fields.Object("pattern");
  if (pattern.Has("String")) return ReadLiteral(pattern);
  const std::string regex = pattern.String("Regex");
  if (!pattern.ok()) return std::nullopt;
  absl::StatusOr<Pattern> parsed = Pattern::Parse(regex);
  if (parsed.ok()) return *std::move(parsed);
  pattern.Fail(absl::UnimplementedError(absl::StrCat(
      pattern.PathOf("Regex"), " ", ReadableName(regex), " ", parsed.status().message())));
  return std::nullopt;
}

std::string ReadContent(const JsonFields& fields, absl::string_view key) {
  constexpr size_t kMaxContentBytes = 16;
  std::string content = fields.String(key);
  if (content.size() > kMaxContentBytes) {
    fields.Fail(key,
                absl::StrCat("has ", content.size(), " bytes, the limit is ", kMaxContentBytes));
  }
  return content;
}

}  // namespace attendant
