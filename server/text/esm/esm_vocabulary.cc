// SPDX-License-Identifier: Apache-2.0
#include "server/text/esm/esm_vocabulary.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "server/text/unicode/characters.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

using Ids = std::map<std::string, int64_t, std::less<>>;

absl::StatusOr<bool> IsNull(const JsonNode& file, absl::string_view field) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> fields, file.FieldNames());
  return !file.Has(field) && std::find(fields.begin(), fields.end(), field) != fields.end();
}

bool HasWhitespace(absl::string_view token) {
  const char* position = token.data();
  for (const char* const end = position + token.size(); position < end;) {
    if (IsWhitespace(NextCharacter(position))) return true;
  }
  return false;
}

// One in each line, without the spaces around it.
absl::StatusOr<std::vector<std::string>> ReadTokens(absl::string_view vocabulary) {
  if (FindInvalidUtf8(vocabulary).has_value()) {
    return absl::InvalidArgumentError("the file is not UTF-8");
  }
  std::vector<std::string> tokens;
  std::set<absl::string_view> known;
  // Blank lines before the first token would count: they move the ids.
  for (absl::string_view line :
       absl::StrSplit(absl::StripTrailingAsciiWhitespace(vocabulary), '\n')) {
    if (tokens.size() == kMaxEsmTokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("has more than ", kMaxEsmTokens, " tokens, the limit"));
    }
    line = absl::StripAsciiWhitespace(line);
    const char* problem = line.empty()                ? "is empty"
                          : HasWhitespace(line)       ? "has white space inside"
                          : known.insert(line).second ? nullptr
                                                      : "is there already";
    if (problem != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", tokens.size() + 1, ", ", Quoted(line), ", ", problem));
    }
    tokens.emplace_back(line);
  }
  return tokens;
}

absl::Status CheckNamed(const Ids& ids, const std::vector<Literal>& named) {
  for (const Literal& literal : named) {
    if (!ids.contains(literal.text)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the special token ", Quoted(literal.text), " is in no line"));
    }
    if (literal.single_word) {
      return absl::UnimplementedError(
          absl::StrCat("single_word of the token ", Quoted(literal.text), " is not supported"));
    }
  }
  return absl::OkStatus();
}

std::string AddedTokensJson(const std::vector<std::string>& tokens,
                            const std::vector<Literal>& named) {
  std::set<absl::string_view> special;
  for (const Literal& literal : named) {
    if (literal.special) special.insert(literal.text);
  }
  std::string json;
  for (size_t i = 0; i < tokens.size(); ++i) {
    absl::StrAppend(&json, json.empty() ? "" : ",",
                    AddedTokenJson(static_cast<int64_t>(i),
                                   {.text = tokens[i], .special = special.contains(tokens[i])}));
  }
  return json;
}

// "[CLS] first [SEP] second [SEP]", in ESM's words. Without an end there are no pairs.
std::string TemplateJson(const EsmTokens& tokens, const Ids& ids) {
  const auto token = [&](const char* name) {
    return absl::StrCat(R"({"SpecialToken":{"id":")", name, R"(","type_id":0}})");
  };
  const auto text = [](const char* name) {
    return absl::StrCat(R"({"Sequence":{"id":")", name, R"(","type_id":0}})");
  };
  const auto define = [](const char* name, int64_t id) {
    return absl::StrCat("\"", name, R"(":{"ids":[)", id, "]}");
  };
  const std::string end = tokens.eos.has_value() ? absl::StrCat(",", token("eos")) : "";
  std::string defined = define("cls", ids.find(tokens.cls)->second);
  if (tokens.eos.has_value()) {
    absl::StrAppend(&defined, ",", define("eos", ids.find(*tokens.eos)->second));
  }
  const std::string single = absl::StrCat(token("cls"), ",", text("A"), end);
  const std::string pair =
      tokens.eos.has_value() ? absl::StrCat(R"("pair":[)", single, ",", text("B"), end, "],") : "";
  return absl::StrCat(R"({"type":"TemplateProcessing","single":[)", single, "],", pair,
                      R"("special_tokens":{)", defined, "}}");
}

}  // namespace

absl::StatusOr<EsmTokens> ReadEsmTokens(const JsonNode& config, const JsonNode& map) {
  EsmTokens tokens;
  ATTENDANT_RETURN_IF_ERROR(CheckFalse(config, "split_special_tokens"));
  ATTENDANT_ASSIGN_OR_RETURN(const bool endless, IsNull(config, "eos_token"));
  if (endless && !map.Has("eos_token")) tokens.eos.reset();
  std::optional<std::string> cls, unk;
  for (const JsonNode* const file : {&config, &map}) {
    ATTENDANT_RETURN_IF_ERROR(ReadTokenText(*file, "cls_token", cls));
    ATTENDANT_RETURN_IF_ERROR(ReadTokenText(*file, "unk_token", unk));
    if (tokens.eos.has_value()) {
      ATTENDANT_RETURN_IF_ERROR(ReadTokenText(*file, "eos_token", tokens.eos));
    }
  }
  if (cls.has_value()) tokens.cls = *std::move(cls);
  if (unk.has_value()) tokens.unk = *std::move(unk);
  return tokens;
}

absl::StatusOr<std::string> EsmTokenizerJson(absl::string_view vocabulary, const EsmTokens& tokens,
                                             const std::vector<Literal>& named) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> lines, ReadTokens(vocabulary));
  Ids ids;
  std::string vocab;
  for (const std::string& line : lines) {
    const auto id = static_cast<int64_t>(ids.size());
    ids[line] = id;
    absl::StrAppend(&vocab, vocab.empty() ? "" : ",", InQuotes(line), ":", id);
  }
  std::vector<Literal> needed = named;
  for (const std::string& text : {tokens.cls, tokens.unk, tokens.eos.value_or(tokens.cls)}) {
    needed.push_back({.text = text});
  }
  ATTENDANT_RETURN_IF_ERROR(CheckNamed(ids, needed));
  // Spaces are those of Python. No word begins with a token: the model knows none of them.
  return absl::StrCat(
      R"({"version":"1.0","added_tokens":[)", AddedTokensJson(lines, named),
      R"(],"pre_tokenizer":{"type":"Split","pattern":{"Regex":"[\\s\u001c-\u001f]+"},)",
      R"("behavior":"Removed","invert":false},"post_processor":)", TemplateJson(tokens, ids),
      R"(,"model":{"type":"WordPiece","continuing_subword_prefix":"",)",
      R"("max_input_chars_per_word":100,"unk_token":)", InQuotes(tokens.unk), R"(,"vocab":{)",
      vocab, "}}}");
}

}  // namespace attendant
