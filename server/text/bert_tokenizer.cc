// SPDX-License-Identifier: Apache-2.0
#include "server/text/bert_tokenizer.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/text/unicode/utf8.h"
#include "server/text/word_reader.h"

namespace attendant {
namespace {

// Text is normalized in chunks of this size, cut at spaces, so that truncation saves most of the
// work.
constexpr size_t kChunkBytes = 4096;

}  // namespace

// A text's ids so far. More than `enough` need not be found.
struct BertTokenizer::Ids {
  std::vector<int32_t> values;
  size_t enough;
  std::string normalized;  // scratch

  bool more() const { return values.size() < enough; }
};

absl::StatusOr<std::unique_ptr<BertTokenizer>> BertTokenizer::Create(
    const TokenizerConfig& config) {
  std::unique_ptr<BertTokenizer> tokenizer(new BertTokenizer(config));
  ATTENDANT_RETURN_IF_ERROR(tokenizer->AddTokens(config.added_tokens));
  return tokenizer;
}

BertTokenizer::BertTokenizer(const TokenizerConfig& config)
    : normalizer_(config.normalizer),
      wordpiece_(config.model),
      sequence_(config.sequence),
      vocab_(config.vocab) {
  for (const VocabularyEntry& entry : config.model.vocabulary) {
    token_strings_.Add(entry.id, entry.token);
  }
  for (const AddedToken& token : config.added_tokens) token_strings_.Add(token.id, token.content);
  token_strings_.Seal();
}

absl::Status BertTokenizer::AddTokens(const std::vector<AddedToken>& tokens) {
  for (AddedToken token : tokens) {
    AddedTokens& group = token.normalized ? normalized_tokens_ : raw_tokens_;
    if (token.normalized) {
      std::string normalized;
      normalizer_.Append(token.content, normalized);
      token.content = std::move(normalized);
    }
    ATTENDANT_RETURN_IF_ERROR(group.Add(std::move(token)));
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenizedText> BertTokenizer::Tokenize(absl::string_view text,
                                                      const TokenizerOptions& options) const {
  if (const std::optional<size_t> offset = FindInvalidUtf8(text)) {
    return absl::InvalidArgumentError(absl::StrCat("invalid UTF-8 at byte ", *offset));
  }
  const auto num_special = static_cast<int64_t>(num_special_tokens());
  if (options.max_tokens < num_special) {
    return absl::InvalidArgumentError(absl::StrCat("max_tokens is ", options.max_tokens,
                                                   ", the special tokens alone are ", num_special));
  }
  // One more than fits tells that there was more; a refusal tells how many there were.
  const auto room = static_cast<size_t>(options.max_tokens - num_special);
  Ids ids{{}, options.truncate ? room + 1 : std::numeric_limits<size_t>::max(), {}};
  AppendText(text, ids);
  const bool too_long = ids.values.size() > room;
  if (too_long && !options.truncate) {
    return absl::InvalidArgumentError(absl::StrCat("the text has ",
                                                   ids.values.size() + num_special_tokens(),
                                                   " tokens, the limit is ", options.max_tokens));
  }
  if (too_long) ids.values.resize(room);
  TokenizedText tokenized = AddSpecialTokens(ids.values);
  tokenized.truncated = too_long;
  return tokenized;
}

bool BertTokenizer::AppendText(absl::string_view text, Ids& ids) const {
  return raw_tokens_.Split(text, [&](const AddedTokens::Part& part) {
    if (part.id == ByteTrie::kNoId) return AppendRawText(part.text, ids);
    ids.values.push_back(part.id);
    return ids.more();
  });
}

bool BertTokenizer::AppendRawText(absl::string_view text, Ids& ids) const {
  while (!text.empty()) {
    ids.normalized.clear();
    normalizer_.Append(TakeChunk(text), ids.normalized);
    const bool more = normalized_tokens_.Split(ids.normalized, [&](const AddedTokens::Part& part) {
      if (part.id == ByteTrie::kNoId) return AppendWords(part.text, ids);
      ids.values.push_back(part.id);
      return ids.more();
    });
    if (!more) return false;
  }
  return true;
}

bool BertTokenizer::AppendWords(absl::string_view normalized, Ids& ids) const {
  WordReader words(normalized);
  for (absl::string_view word = words.Next(); !word.empty(); word = words.Next()) {
    wordpiece_.Append(word, ids.values);
    if (!ids.more()) return false;
  }
  return true;
}

// Cuts the next chunk off `text`. No word goes past a space or line end; an added token may.
absl::string_view BertTokenizer::TakeChunk(absl::string_view& text) const {
  size_t size = text.size();
  if (size > kChunkBytes && normalized_tokens_.empty()) {
    size = std::min(size, text.find_first_of(" \n", kChunkBytes));
  }
  const absl::string_view chunk = text.substr(0, size);
  text.remove_prefix(size);
  return chunk;
}

TokenizedText BertTokenizer::AddSpecialTokens(const std::vector<int32_t>& ids) const {
  TokenizedText result;
  const size_t len = ids.size() + num_special_tokens();
  result.token_ids.reserve(len);
  result.segment_ids.reserve(len);
  const auto add = [&](int32_t id, int32_t segment_id) {
    result.token_ids.push_back(id);
    result.segment_ids.push_back(segment_id);
  };
  for (const SpecialToken& special : sequence_.before) add(special.id, special.segment_id);
  for (const int32_t id : ids) add(id, sequence_.text_segment_id);
  for (const SpecialToken& special : sequence_.after) add(special.id, special.segment_id);
  return result;
}

}  // namespace attendant
