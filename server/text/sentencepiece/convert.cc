// SPDX-License-Identifier: Apache-2.0
#include "server/text/sentencepiece/convert.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"
#include "server/text/base/literals.h"
#include "server/text/base/token_files.h"
#include "server/text/sentencepiece/converter.h"
#include "server/text/sentencepiece/families.h"
#include "server/text/sentencepiece/family_parts.h"
#include "server/text/sentencepiece/model_proto.h"

namespace attendant {
namespace {

constexpr int64_t kMaxModelBytes = int64_t{64} << 20;
constexpr uint64_t kUnigram = 1, kBpe = 2;
// Tokens of roles that are none of the family's.
using Others = std::array<std::optional<Literal>, kTokenRoles.size()>;

absl::StatusOr<const SentencePieceFamily*> FindFamilyOf(const JsonFolder& folder,
                                                        const JsonNode& config) {
  std::string name, model_type;
  ATTENDANT_RETURN_IF_ERROR(config.Read("tokenizer_class", name));
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode model, folder.ReadOrEmpty("config.json"));
  ATTENDANT_RETURN_IF_ERROR(model.Read("model_type", model_type));
  const bool of_no_family = name == "TokenizersBackend" || name == "PreTrainedTokenizerFast";
  const absl::string_view tokenizer_class =
      of_no_family ? absl::string_view() : absl::StripSuffix(name, "Fast");
  const SentencePieceFamily* family = FindSentencePieceFamily(tokenizer_class, model_type);
  if (family != nullptr) return family;
  return absl::UnimplementedError(
      absl::StrCat(folder.path(), ": the sentencepiece model of tokenizer_class ", Quoted(name),
                   " and model_type ", Quoted(model_type),
                   " is not supported without tokenizer.json; supported: AlbertTokenizer, "
                   "XLMRobertaTokenizer, CamembertTokenizer, T5Tokenizer, DebertaV2Tokenizer"));
}

absl::Status CheckModel(const SentencePieceFamily& family, const SentencePieceModel& model) {
  if (model.model_type != kUnigram) {
    return absl::UnimplementedError(
        absl::StrCat("model_type ", model.model_type, model.model_type == kBpe ? " (BPE)" : "",
                     " is not supported without tokenizer.json; supported: 1 (Unigram)"));
  }
  const std::pair<bool, const char*> options[] = {
      {model.treat_whitespace_as_suffix, "treat_whitespace_as_suffix"},
      {model.byte_fallback, "byte_fallback"},
      {!model.add_dummy_prefix, "add_dummy_prefix = false"},
      {!model.escape_whitespaces, "escape_whitespaces = false"}};
  for (const auto& [is_set, name] : options) {
    if (!is_set) continue;
    return absl::UnimplementedError(
        absl::StrCat(name, " is not supported: transformers ignores it"));
  }
  for (size_t i = 0; i < family.expected.size(); ++i) {
    if (i < model.pieces.size() && model.pieces[i].text == family.expected[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "piece ", i, " is ", i < model.pieces.size() ? Quoted(model.pieces[i].text) : "missing",
        ", of a ", family.tokenizer_class, " it is ", Quoted(family.expected[i])));
  }
  return absl::OkStatus();
}

absl::Status CheckText(const JsonNode& file, const Literal& literal) {
  if (!literal.text.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file.where(), ": a special token is empty"));
}

// The special tokens of a family's roles are its own, with the file's flags. Those of roles that
// the family does not have are added to `others`, by their place among all.
absl::Status ReadRoles(const JsonNode& file, const SentencePieceFamily& family,
                       SentencePieceConverter& converter, Others& others) {
  for (size_t i = 0; i < others.size(); ++i) {
    const absl::string_view field = kTokenRoles[i];
    if (!file.Has(field)) continue;
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode token, file.Field(field));
    ATTENDANT_ASSIGN_OR_RETURN(Literal literal, ReadLiteral(token));
    const auto role = std::find_if(family.roles.begin(), family.roles.end(),
                                   [&](const FamilyRole& known) { return known.field == field; });
    if (role == family.roles.end()) {
      ATTENDANT_RETURN_IF_ERROR(CheckText(file, literal));
      literal.special = true;
      others[i] = std::move(literal);
    } else if (literal.text != role->token) {
      return Unsupported(file, field, Quoted(literal.text), Quoted(role->token));
    } else if (token.IsObject()) {
      *converter.FindLiteral(role->token) = std::move(literal);
    }
  }
  return absl::OkStatus();
}

// Tokens of roles that no family has: "image_token", {"x": "..."} in place of a list.
absl::Status CheckOtherRoles(const JsonNode& file) {
  for (const absl::string_view field : {kExtraTokens, kOldExtraTokens}) {
    if (!file.Has(field)) continue;
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode extras, file.Field(field));
    if (!extras.IsObject()) continue;
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, extras.FieldNames());
    if (!names.empty()) return Unsupported(file, field, "an object", "a list of tokens");
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> fields, file.FieldNames());
  for (const std::string& field : fields) {
    const bool known =
        std::find(kTokenRoles.begin(), kTokenRoles.end(), field) != kTokenRoles.end();
    if (known || !absl::EndsWith(field, "_token") || !file.Has(field)) continue;
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode token, file.Field(field));
    std::string text;
    if (!token.IsObject() && !token.Get(text).ok()) continue;  // add_bos_token is a flag
    return Unsupported(file, field, "there", "none");
  }
  return absl::OkStatus();
}

absl::Status CheckId(const JsonNode& file, absl::string_view text, int64_t id,
                     SentencePieceConverter& converter) {
  if (!converter.Knows(text)) {
    return absl::UnimplementedError(absl::StrCat(file.where(), ": the added token ", Quoted(text),
                                                 " is none of the family's or the model's"));
  }
  if (converter.IdOf(text) == id) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file.where(), ": ", Quoted(text), " has the id ",
                                                 id, ", the conversion gives it ",
                                                 converter.IdOf(text)));
}

// In the order of the ids: those that the model does not have get the next ones.
absl::Status ReadAdded(const JsonNode& config, SentencePieceConverter& converter) {
  ATTENDANT_ASSIGN_OR_RETURN(auto by_id, ReadAddedLiterals(config));
  for (auto& [id, literal] : by_id) {
    converter.AddLiteral(literal);
    ATTENDANT_RETURN_IF_ERROR(CheckId(config, literal.text, id, converter));
    *converter.FindLiteral(literal.text) = std::move(literal);
  }
  return absl::OkStatus();
}

// {"[MASK]": 128000}
absl::Status CheckAddedFile(const JsonFolder& folder, SentencePieceConverter& converter) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode added, folder.ReadOrEmpty("added_tokens.json"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> tokens, added.FieldNames());
  for (const std::string& token : tokens) {
    int64_t id = 0;
    ATTENDANT_RETURN_IF_ERROR(added.Require(token, id));
    ATTENDANT_RETURN_IF_ERROR(CheckId(added, token, id, converter));
  }
  return absl::OkStatus();
}

absl::StatusOr<SentencePieceOptions> ReadOptionsOf(const JsonNode& config, const JsonNode& map,
                                                   const SentencePieceFamily& family) {
  SentencePieceOptions options;
  ATTENDANT_ASSIGN_OR_RETURN(options.parts, ReadFamilyOptions(config));
  ATTENDANT_ASSIGN_OR_RETURN(const bool said, SayExtraLiterals(config, map));
  options.keeps_own_literals = !said;
  ATTENDANT_ASSIGN_OR_RETURN(options.extra_ids, ReadExtraIds(config, family));
  return options;
}

absl::StatusOr<std::string> Convert(const JsonFolder& folder, absl::string_view bytes) {
  ATTENDANT_ASSIGN_OR_RETURN(const SentencePieceModel model, ParseSentencePiece(bytes));
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.ReadOrEmpty("tokenizer_config.json"));
  ATTENDANT_ASSIGN_OR_RETURN(const SentencePieceFamily* const family, FindFamilyOf(folder, config));
  ATTENDANT_RETURN_IF_ERROR(CheckModel(*family, model));
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode map, ReadSpecialTokensMap(folder, config));
  ATTENDANT_ASSIGN_OR_RETURN(const SentencePieceOptions options,
                             ReadOptionsOf(config, map, *family));
  SentencePieceConverter converter(*family, model, options);
  Others others;
  for (const JsonNode* const file : {&config, &map}) {
    ATTENDANT_RETURN_IF_ERROR(ReadRoles(*file, *family, converter, others));
    ATTENDANT_RETURN_IF_ERROR(CheckOtherRoles(*file));
  }
  ATTENDANT_RETURN_IF_ERROR(ReadAdded(config, converter));
  for (std::optional<Literal>& other : others) {
    if (other.has_value()) converter.AddLiteral(*std::move(other));
  }
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<Literal> extras, ReadExtraLiterals(config, map));
  for (Literal& extra : extras) {
    ATTENDANT_RETURN_IF_ERROR(CheckText(config, extra));
    converter.AddLiteral(std::move(extra));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckAddedFile(folder, converter));
  return converter.Json();
}

}  // namespace

absl::StatusOr<ConvertedTokenizer> ConvertSentencePiece(const JsonFolder& folder,
                                                        absl::Span<const char* const> files) {
  for (const char* const file : files) {
    const std::string path = absl::StrCat(folder.path(), "/", file);
    const absl::StatusOr<std::string> bytes = ReadTextFile(path, kMaxModelBytes);
    if (absl::IsNotFound(bytes.status())) continue;
    ATTENDANT_RETURN_IF_ERROR(bytes);
    absl::StatusOr<std::string> json = Convert(folder, *bytes);
    if (json.ok()) return ConvertedTokenizer{.json = *std::move(json), .path = path};
    return absl::Status(json.status().code(), absl::StrCat(path, ": ", json.status().message()));
  }
  return absl::NotFoundError(absl::StrCat(folder.path(), ": there is no sentencepiece model"));
}

}  // namespace attendant
