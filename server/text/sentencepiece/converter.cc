// SPDX-License-Identifier: Apache-2.0
#include "server/text/sentencepiece/converter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

using PieceType = SentencePieceModel::PieceType;

constexpr absl::string_view kMaskField = "mask_token";

// A JSON string.
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

const char* Truth(bool value) { return value ? "true" : "false"; }

// Of "<s> $A </s>".
std::string TemplateParts(absl::string_view text) {
  std::string json;
  for (const absl::string_view part : absl::StrSplit(text, ' ')) {
    const std::pair<absl::string_view, absl::string_view> name =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    absl::string_view id = name.first;
    const bool sequence = absl::ConsumePrefix(&id, "$");
    absl::StrAppend(&json, json.empty() ? "" : ",",
                    sequence ? R"({"Sequence":)" : R"({"SpecialToken":)", R"({"id":)", InQuotes(id),
                    R"(,"type_id":)", name.second.empty() ? "0" : name.second, "}}");
  }
  return json;
}

}  // namespace

SentencePieceConverter::SentencePieceConverter(const SentencePieceFamily& family,
                                               const SentencePieceModel& model,
                                               const SentencePieceOptions& options)
    : family_(family), model_(model), options_(options) {
  ListTokens();
  for (const FamilyRole& role : family_.roles) {
    AddLiteral({.text = std::string(role.token),
                .lstrip = role.field == kMaskField && family_.mask_strips_left});
  }
  if (!options_.keeps_own_literals) return;
  for (const SentencePieceModel::Piece& piece : model_.pieces) {
    const bool control = piece.type == PieceType::kControl;
    if (!control && piece.type != PieceType::kUserDefined) continue;
    AddLiteral({.text = piece.text, .special = control});
  }
  for (const std::string& token : extra_tokens_) AddLiteral({.text = token});
}

SentencePieceLiteral* SentencePieceConverter::FindLiteral(absl::string_view text) {
  const auto found = literal_places_.find(text);
  return found == literal_places_.end() ? nullptr : &literals_[found->second];
}

int64_t SentencePieceConverter::IdOf(absl::string_view text) {
  const auto [found, added] = ids_.try_emplace(std::string(text), next_id_);
  if (added) ++next_id_;
  return found->second;
}

std::string SentencePieceConverter::Json() {
  return absl::StrCat(R"({"version":"1.0","added_tokens":[)", Literals(), R"(],"normalizer":)",
                      Normalizer(), R"(,"pre_tokenizer":)", PreTokenizer(), R"(,"post_processor":)",
                      Template(), R"(,"decoder":)", Metaspace(),
                      R"(,"model":{"type":"Unigram","unk_id":)", family_.unk_id,
                      R"(,"byte_fallback":false,"vocab":[)", Vocabulary(), "]}}");
}

void SentencePieceConverter::AddLiteral(SentencePieceLiteral literal) {
  if (!literal_places_.try_emplace(literal.text, literals_.size()).second) return;
  IdOf(literal.text);
  literals_.push_back(std::move(literal));
}

// As the reader does: of a token that is there twice, the last counts.
void SentencePieceConverter::AddToken(absl::string_view text, double score) {
  ids_[std::string(text)] = static_cast<int64_t>(tokens_.size());
  tokens_.push_back({text, score});
}

void SentencePieceConverter::ListTokens() {
  for (const FamilyToken& token : family_.first) {
    AddToken(token.text, static_cast<double>(token.score));
  }
  for (size_t i = family_.dropped; i < model_.pieces.size(); ++i) {
    AddToken(model_.pieces[i].text, static_cast<double>(model_.pieces[i].score));
  }
  for (const FamilyToken& token : family_.last) {
    AddToken(token.text, static_cast<double>(token.score));
  }
  for (int64_t i = options_.extra_ids.value_or(family_.extra_ids); i-- > 0;) {
    extra_tokens_.push_back(absl::StrCat("<extra_id_", i, ">"));
  }
  for (const std::string& token : extra_tokens_) AddToken(token, 0);
  next_id_ = static_cast<int64_t>(tokens_.size());
}

std::string SentencePieceConverter::Literals() {
  std::vector<std::pair<int64_t, const SentencePieceLiteral*>> by_id;
  for (const SentencePieceLiteral& literal : literals_)
    by_id.emplace_back(IdOf(literal.text), &literal);
  std::sort(by_id.begin(), by_id.end());
  std::string json;
  for (const auto& [id, literal] : by_id) {
    absl::StrAppend(&json, json.empty() ? "" : ",", R"({"id":)", id, R"(,"content":)",
                    InQuotes(literal->text), R"(,"single_word":)", Truth(literal->single_word),
                    R"(,"lstrip":)", Truth(literal->lstrip), R"(,"rstrip":)",
                    Truth(literal->rstrip), R"(,"normalized":)", Truth(literal->normalized),
                    R"(,"special":)", Truth(literal->special), "}");
  }
  return json;
}

std::string SentencePieceConverter::Normalizer() const {
  if (family_.cleans_spaces) return DebertaNormalizer(options_.deberta);
  if (model_.precompiled_charsmap.empty()) return "null";
  return absl::StrCat(R"({"type":"Precompiled","precompiled_charsmap":")",
                      absl::Base64Escape(model_.precompiled_charsmap), R"("})");
}

std::string SentencePieceConverter::Metaspace() const {
  if (family_.cleans_spaces) return DebertaMetaspace(options_.deberta);
  return MetaspaceJson(options_.add_prefix_space ? "always" : "never");
}

std::string SentencePieceConverter::PreTokenizer() const {
  if (family_.cleans_spaces) return DebertaPreTokenizer(options_.deberta);
  return absl::StrCat(R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)",
                      Metaspace(), "]}");
}

std::string SentencePieceConverter::Template() {
  std::string tokens;
  for (const FamilyRole& role : family_.roles) {
    if (role.field != "bos_token" && role.field != "eos_token") continue;
    const std::string name = InQuotes(role.token);
    absl::StrAppend(&tokens, tokens.empty() ? "" : ",", name, R"(:{"id":)", name, R"(,"ids":[)",
                    IdOf(role.token), R"(],"tokens":[)", name, "]}");
  }
  return absl::StrCat(R"({"type":"TemplateProcessing","single":[)", TemplateParts(family_.single),
                      R"(],"pair":[)", TemplateParts(family_.pair), R"(],"special_tokens":{)",
                      tokens, "}}");
}

// Scores as doubles, to the last bit.
std::string SentencePieceConverter::Vocabulary() const {
  std::string json;
  for (const ScoredPiece& token : tokens_) {
    absl::StrAppend(&json, json.empty() ? "[" : ",[", InQuotes(token.text), ",");
    absl::StrAppendFormat(&json, "%.17g]", token.score);
  }
  return json;
}

}  // namespace attendant
