// SPDX-License-Identifier: Apache-2.0
#include "server/text/tokenizer_json.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/part_table.h"
#include "server/text/base/token_trie.h"

namespace attendant {
namespace {

constexpr JsonLimits kLimits = {.max_bytes = kMaxTokenizerFileBytes,
                                .max_depth = 64};  // a real file has 6

AddedToken ReadAddedToken(const JsonFields& fields) {
  AddedToken token;
  token.content = fields.String("content");
  token.id = static_cast<int32_t>(fields.Integer("id", kMaxTokenId));
  token.single_word = fields.Bool("single_word");
  token.lstrip = fields.Bool("lstrip");
  token.rstrip = fields.Bool("rstrip");
  token.normalized = fields.Bool("normalized");
  token.special = fields.Has("special") && fields.Bool("special");
  return token;
}

// The library ignores the file's ids: a token has the vocabulary's, else the next after all others.
// A file that says something else is ambiguous, so it is refused.
std::vector<AddedToken> ReadAddedTokens(const JsonFields& file, const ModelPart& part) {
  std::vector<AddedToken> tokens;
  if (!file.Has("added_tokens")) return tokens;
  auto next_id = static_cast<int64_t>(part.vocabulary.size());
  for (const JsonFields& fields : file.Objects("added_tokens")) {
    if (!file.ok()) break;
    tokens.push_back(ReadAddedToken(fields));
    const AddedToken& token = tokens.back();
    const int64_t known = part.model->FindToken(token.content);
    const int64_t id = known != TokenTrie::kNoId ? known : next_id++;
    if (token.id == id) continue;
    fields.Fail("id", absl::StrCat("is ", token.id, ", but '", token.content, "' has the id ", id,
                                   known != TokenTrie::kNoId ? " in model.vocab"
                                                             : " as the next after model.vocab"));
  }
  return tokens;
}

int64_t CountIds(const TokenizerParts& parts, const std::vector<VocabularyEntry>& vocabulary) {
  int64_t largest = -1;
  const auto add = [&](int32_t id) { largest = std::max<int64_t>(largest, id); };
  for (const VocabularyEntry& entry : vocabulary) add(entry.id);
  for (const AddedToken& token : parts.added_tokens) add(token.id);
  for (const TemplatePart& part : parts.sequence.single) add(part.id);
  for (const TemplatePart& part : parts.sequence.pair) add(part.id);
  return largest + 1;
}

TokenStrings ListStrings(const TokenizerParts& parts,
                         const std::vector<VocabularyEntry>& vocabulary) {
  TokenStrings strings;
  for (const VocabularyEntry& entry : vocabulary) strings.Add(entry.id, entry.token);
  for (const AddedToken& token : parts.added_tokens) strings.Add(token.id, token.content);
  strings.Seal();
  return strings;
}

TokenizerParts ReadParts(const JsonFields& file, bool lowercases) {
  TokenizerParts parts;
  if (file.Has("version") && file.String("version") != "1.0") {
    file.Fail(UnsupportedPart("version", file.String("version"), "1.0"));
  }
  ModelPart model = ReadModel(file);
  parts.normalizer = ReadNormalizer(file, lowercases);
  parts.pre_tokenizer = ReadPreTokenizer(file);
  parts.sequence = ReadSequenceTemplate(file, kMaxTokenId);
  if (parts.pre_tokenizer != nullptr && parts.pre_tokenizer->needs_start() &&
      parts.normalizer != nullptr && !parts.normalizer->keeps_start()) {
    file.Fail(absl::UnimplementedError(
        "pre_tokenizer prepend_scheme 'first' is not supported with this normalizer"));
  }
  if (!file.ok()) return {};
  parts.added_tokens = ReadAddedTokens(file, model);
  parts.model = std::move(model.model);
  parts.vocab = CountIds(parts, model.vocabulary);
  parts.strings = ListStrings(parts, model.vocabulary);
  return parts;
}

}  // namespace

absl::StatusOr<TokenizerParts> ParseTokenizerJson(absl::string_view contents, bool lowercases) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode file, ParseJson(contents, "the file", kLimits));
  absl::Status status;
  TokenizerParts parts = ReadParts(JsonFields(file, status), lowercases);
  ATTENDANT_RETURN_IF_ERROR(status);
  std::unique_ptr<Decoder> decoder = ReadDecoder(JsonFields(file, status));
  if (status.ok()) {
    parts.decoder = std::move(decoder);
  } else {
    parts.decoder = status;
  }
  return parts;
}

}  // namespace attendant
