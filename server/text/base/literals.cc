// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/literals.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace {

absl::Status ReadFlags(const JsonNode& token, Literal& literal) {
  ATTENDANT_RETURN_IF_ERROR(token.Read("single_word", literal.single_word));
  ATTENDANT_RETURN_IF_ERROR(token.Read("lstrip", literal.lstrip));
  ATTENDANT_RETURN_IF_ERROR(token.Read("rstrip", literal.rstrip));
  ATTENDANT_RETURN_IF_ERROR(token.Read("normalized", literal.normalized));
  return token.Read("special", literal.special);
}

// With the defaults of the library's AddedToken.
absl::StatusOr<Literal> ReadAddedToken(const JsonNode& token) {
  Literal literal;
  literal.special = false;
  literal.normalized = true;
  ATTENDANT_RETURN_IF_ERROR(token.Require("content", literal.text));
  ATTENDANT_RETURN_IF_ERROR(ReadFlags(token, literal));
  return literal;
}

// Of a list.
absl::StatusOr<Literal> ReadListed(const JsonNode& token) {
  if (!token.IsObject()) return ReadLiteral(token);
  std::string type;
  ATTENDANT_RETURN_IF_ERROR(token.Read("__type", type));
  if (type != "AddedToken") return Unsupported(token, "__type", Quoted(type), "`AddedToken`");
  return ReadAddedToken(token);
}

// Whether the file says something of extra tokens. As for transformers, an object without names
// does not.
absl::StatusOr<bool> SaysExtras(const JsonNode& file, absl::string_view field) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> fields, file.FieldNames());
  if (std::find(fields.begin(), fields.end(), field) == fields.end()) return false;
  if (!file.Has(field)) return true;  // null
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode list, file.Field(field));
  if (!list.IsObject()) return true;
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, list.FieldNames());
  return !names.empty();
}

const char* Truth(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string InQuotes(absl::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      absl::StrAppendFormat(&json, "\\u%04x", byte);
      continue;
    }
    if (c == '"' || c == '\\') json.push_back('\\');
    json.push_back(c);
  }
  json.push_back('"');
  return json;
}

std::string AddedTokenJson(int64_t id, const Literal& literal) {
  return absl::StrCat(R"({"id":)", id, R"(,"content":)", InQuotes(literal.text),
                      R"(,"single_word":)", Truth(literal.single_word), R"(,"lstrip":)",
                      Truth(literal.lstrip), R"(,"rstrip":)", Truth(literal.rstrip),
                      R"(,"normalized":)", Truth(literal.normalized), R"(,"special":)",
                      Truth(literal.special), "}");
}

absl::StatusOr<Literal> ReadLiteral(const JsonNode& token) {
  Literal literal;
  ATTENDANT_RETURN_IF_ERROR(token.IsObject() ? token.Require("content", literal.text)
                                             : token.Get(literal.text));
  if (token.IsObject()) ATTENDANT_RETURN_IF_ERROR(ReadFlags(token, literal));
  return literal;
}

absl::Status ReadTokenText(const JsonNode& file, absl::string_view field,
                           std::optional<std::string>& text) {
  if (!file.Has(field)) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode node, file.Field(field));
  ATTENDANT_ASSIGN_OR_RETURN(Literal literal, ReadLiteral(node));
  text = std::move(literal.text);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Literal>> ReadLiterals(const JsonNode& tokens) {
  std::vector<Literal> literals;
  if (tokens.IsObject()) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, tokens.FieldNames());
    for (const std::string& name : names) {
      ATTENDANT_ASSIGN_OR_RETURN(const JsonNode token, tokens.Field(name));
      ATTENDANT_ASSIGN_OR_RETURN(literals.emplace_back(), ReadLiteral(token));
    }
    return literals;
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> list, tokens.Elements());
  for (const JsonNode& token : list) {
    ATTENDANT_ASSIGN_OR_RETURN(literals.emplace_back(), ReadListed(token));
  }
  return literals;
}

absl::StatusOr<std::map<int64_t, Literal>> ReadAddedLiterals(const JsonNode& config) {
  std::map<int64_t, Literal> by_id;
  if (!config.Has(kAddedTokens)) return by_id;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode added, config.Field(kAddedTokens));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, added.FieldNames());
  for (const std::string& name : names) {
    int64_t id = 0;
    if (!absl::SimpleAtoi(name, &id)) {
      return absl::InvalidArgumentError(
          absl::StrCat(added.where(), ": ", Quoted(name), " is no id"));
    }
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode token, added.Field(name));
    ATTENDANT_ASSIGN_OR_RETURN(by_id[id], ReadAddedToken(token));
  }
  return by_id;
}

absl::StatusOr<std::vector<Literal>> ReadExtraLiterals(const JsonNode& config,
                                                       const JsonNode& map) {
  std::vector<Literal> literals;
  const std::pair<const JsonNode&, std::vector<absl::string_view>> files[] = {
      {config, {kExtraTokens, kOldExtraTokens}}, {map, {kExtraTokens}}};
  for (const auto& [file, fields] : files) {
    for (const absl::string_view field : fields) {
      if (!file.Has(field)) continue;
      ATTENDANT_ASSIGN_OR_RETURN(const JsonNode extras, file.Field(field));
      ATTENDANT_ASSIGN_OR_RETURN(std::vector<Literal> found, ReadLiterals(extras));
      if (found.empty()) continue;
      literals.insert(literals.end(), std::make_move_iterator(found.begin()),
                      std::make_move_iterator(found.end()));
      break;
    }
  }
  return literals;
}

absl::StatusOr<bool> SayExtraLiterals(const JsonNode& config, const JsonNode& map) {
  bool say = false;
  for (const auto& [file, field] :
       {std::pair(&config, kExtraTokens), std::pair(&config, kOldExtraTokens),
        std::pair(&map, kExtraTokens)}) {
    if (file == &map && !map.Has(field)) continue;
    ATTENDANT_ASSIGN_OR_RETURN(const bool said, SaysExtras(*file, field));
    say = say || said;
  }
  return say;
}

}  // namespace attendant
