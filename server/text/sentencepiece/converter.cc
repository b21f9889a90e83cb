// SPDX-License-Identifier: Apache-2.0
#include "server/text/sentencepiece/converter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attendant {
namespace {

using PieceType = SentencePieceModel::PieceType;

}  // namespace

SentencePieceConverter::SentencePieceConverter(const SentencePieceFamily& family,
                                               const SentencePieceModel& model,
                                               const SentencePieceOptions& options)
    : family_(family), model_(model), options_(options) {
  ListTokens();
  for (const FamilyRole& role : family_.roles) {
    AddLiteral({.text = std::string(role.token),
                .lstrip = role.field == kMaskRole && family_.mask_strips_left});
  }
  if (!options_.keeps_own_literals) return;
  for (const SentencePieceModel::Piece& piece : model_.pieces) {
    const bool control = piece.type == PieceType::kControl;
    if (!control && piece.type != PieceType::kUserDefined) continue;
    AddLiteral({.text = piece.text, .special = control});
  }
  for (const std::string& token : extra_tokens_) AddLiteral({.text = token});
}

Literal* SentencePieceConverter::FindLiteral(absl::string_view text) {
  const auto found = literal_places_.find(text);
  return found == literal_places_.end() ? nullptr : &literals_[found->second];
}

int64_t SentencePieceConverter::IdOf(absl::string_view text) {
  const auto [found, added] = ids_.try_emplace(std::string(text), next_id_);
  if (added) ++next_id_;
  return found->second;
}

std::string SentencePieceConverter::Json() {
  return absl::StrCat(
      R"({"version":"1.0","added_tokens":[)", Literals(), R"(],"normalizer":)",
      FamilyNormalizer(family_, options_.parts, absl::Base64Escape(model_.precompiled_charsmap)),
      R"(,"pre_tokenizer":)", FamilyPreTokenizer(family_, options_.parts), R"(,"post_processor":)",
      FamilyTemplate(family_, [&](const FamilyRole& role) { return IdOf(role.token); }),
      R"(,"decoder":)", FamilyDecoder(family_, options_.parts),
      R"(,"model":{"type":"Unigram","unk_id":)", family_.unk_id,
      R"(,"byte_fallback":false,"vocab":[)", Vocabulary(), "]}}");
}

void SentencePieceConverter::AddLiteral(Literal literal) {
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
  for (int64_t i = options_.extra_ids; i-- > 0;) {
    extra_tokens_.push_back(absl::StrCat("<extra_id_", i, ">"));
  }
  for (const std::string& token : extra_tokens_) AddToken(token, 0);
  next_id_ = static_cast<int64_t>(tokens_.size());
}

std::string SentencePieceConverter::Literals() {
  std::vector<std::pair<int64_t, const Literal*>> by_id;
  for (const Literal& literal : literals_) by_id.emplace_back(IdOf(literal.text), &literal);
  std::sort(by_id.begin(), by_id.end());
  std::string json;
  for (const auto& [id, literal] : by_id) {
    absl::StrAppend(&json, json.empty() ? "" : ",", AddedTokenJson(id, *literal));
  }
  return json;
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
