// SPDX-License-Identifier: Apache-2.0
#include "server/text/named_tokens.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "kernels/core/status_macros.h"
#include "server/text/base/token_files.h"

namespace attendant {
namespace {

using Roles = std::map<std::string, Literal>;

// Of any role: "mask_token", "image_token".
absl::Status ReadRoles(const JsonNode& file, Roles& roles) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> fields, file.FieldNames());
  for (const std::string& field : fields) {
    if (!absl::EndsWith(field, "_token") || !file.Has(field)) continue;
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode token, file.Field(field));
    std::string text;
    if (!token.IsObject() && !token.Get(text).ok()) continue;  // add_bos_token is a flag
    ATTENDANT_ASSIGN_OR_RETURN(Literal literal, ReadLiteral(token));
    literal.special = true;
    roles[field] = std::move(literal);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Literal>> ReadExtras(const JsonNode& config, const JsonNode& map,
                                                const ClassTokens& own) {
  ATTENDANT_ASSIGN_OR_RETURN(const bool said, SayExtraLiterals(config, map));
  if (said) return ReadExtraLiterals(config, map);
  if (map.Has(kOldExtraTokens)) {
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode list, map.Field(kOldExtraTokens));
    return ReadLiterals(list);
  }
  std::vector<Literal> extras;
  for (const std::string& text : own.extras) extras.push_back({.text = text});
  return extras;
}

// {"[MASK]": 4}
absl::Status AddOfFile(const JsonFolder& folder, std::vector<Literal>& tokens) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode file, folder.ReadOrEmpty("added_tokens.json"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> texts, file.FieldNames());
  for (const std::string& text : texts) {
    tokens.push_back({.text = text, .special = false, .normalized = true});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Literal>> ReadNamedTokens(const JsonFolder& folder,
                                                     const JsonNode& tokenizer_config,
                                                     const ClassTokens& own) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode map, ReadSpecialTokensMap(folder, tokenizer_config));
  std::vector<Literal> tokens;
  ATTENDANT_ASSIGN_OR_RETURN(const auto by_id, ReadAddedLiterals(tokenizer_config));
  for (const auto& [id, literal] : by_id) tokens.push_back(literal);
  Roles roles;
  for (const FamilyRole& role : own.roles) {
    roles[std::string(role.field)] = {.text = std::string(role.token),
                                      .lstrip = role.field == kMaskRole && own.mask_strips_left};
  }
  for (const JsonNode* const file : {&tokenizer_config, &map}) {
    ATTENDANT_RETURN_IF_ERROR(ReadRoles(*file, roles));
  }
  for (auto& [field, literal] : roles) tokens.push_back(std::move(literal));
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<Literal> extras, ReadExtras(tokenizer_config, map, own));
  tokens.insert(tokens.end(), std::make_move_iterator(extras.begin()),
                std::make_move_iterator(extras.end()));
  if (!tokenizer_config.Has(kAddedTokens)) {
    ATTENDANT_RETURN_IF_ERROR(AddOfFile(folder, tokens));
  }
  return tokens;
}

}  // namespace attendant
