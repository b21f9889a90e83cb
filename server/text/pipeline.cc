// SPDX-License-Identifier: Apache-2.0
#include "server/text/pipeline.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

// Text is normalized in chunks of this size, cut at spaces, so that truncation saves most of the
// work.
constexpr size_t kChunkBytes = 4096;

}  // namespace

// A text's ids so far. More than `enough` need not be found.
struct TokenizerPipeline::Ids {
  std::vector<int32_t> values;
  size_t enough;
  std::string normalized;  // scratch

  bool more() const { return values.size() < enough; }
};

absl::StatusOr<std::unique_ptr<TokenizerPipeline>> TokenizerPipeline::Create(TokenizerParts parts) {
  std::unique_ptr<TokenizerPipeline> tokenizer(new TokenizerPipeline(std::move(parts)));
  ATTENDANT_RETURN_IF_ERROR(tokenizer->AddTokens(tokenizer->parts_.added_tokens));
  return tokenizer;
}

TokenizerPipeline::TokenizerPipeline(TokenizerParts parts)
    : parts_(std::move(parts)),
      in_chunks_((parts_.normalizer == nullptr || parts_.normalizer->cuts_at_spaces()) &&
                 parts_.pre_tokenizer != nullptr && parts_.pre_tokenizer->cuts_at_spaces()) {}

absl::Status TokenizerPipeline::AddTokens(const std::vector<AddedToken>& tokens) {
  for (AddedToken token : tokens) {
    AddedTokens& group = token.normalized ? normalized_tokens_ : raw_tokens_;
    if (token.normalized && parts_.normalizer != nullptr) {
      std::string normalized;
      parts_.normalizer->Append(token.content, normalized);
      token.content = std::move(normalized);
    }
    ATTENDANT_RETURN_IF_ERROR(group.Add(std::move(token)));
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenizedText> TokenizerPipeline::Tokenize(absl::string_view text,
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

bool TokenizerPipeline::AppendText(absl::string_view text, Ids& ids) const {
  return raw_tokens_.Split(text, [&](const AddedTokens::Part& part) {
    if (part.id == ByteTrie::kNoId) {
      return AppendRawText({part.text, part.text.data() == text.data()}, ids);
    }
    ids.values.push_back(part.id);
    return ids.more();
  });
}

bool TokenizerPipeline::AppendRawText(Piece raw, Ids& ids) const {
  while (!raw.text.empty()) {
    const absl::string_view normalized = Normalize(TakeChunk(raw.text), ids);
    const bool more = normalized_tokens_.Split(normalized, [&](const AddedTokens::Part& part) {
      if (part.id == ByteTrie::kNoId) {
        return AppendPieces({part.text, raw.starts_input && part.text.data() == normalized.data()},
                            ids);
      }
      ids.values.push_back(part.id);
      return ids.more();
    });
    if (!more) return false;
    raw.starts_input = false;
  }
  return true;
}

absl::string_view TokenizerPipeline::Normalize(absl::string_view text, Ids& ids) const {
  if (parts_.normalizer == nullptr) return text;
  ids.normalized.clear();
  parts_.normalizer->Append(text, ids.normalized);
  return ids.normalized;
}

bool TokenizerPipeline::AppendPieces(const Piece& normalized, Ids& ids) const {
  const auto append = [&](const Piece& piece) {
    parts_.model->Append(piece.text, ids.values);
    return ids.more();
  };
  if (parts_.pre_tokenizer == nullptr) return append(normalized);
  return parts_.pre_tokenizer->Split(normalized, append);
}

// Cuts the next chunk off `text`. No word goes past a space or line end; an added token may.
absl::string_view TokenizerPipeline::TakeChunk(absl::string_view& text) const {
  size_t size = text.size();
  if (size > kChunkBytes && in_chunks_ && normalized_tokens_.empty()) {
    size = std::min(size, text.find_first_of(" \n", kChunkBytes));
  }
  const absl::string_view chunk = text.substr(0, size);
  text.remove_prefix(size);
  return chunk;
}

TokenizedText TokenizerPipeline::AddSpecialTokens(const std::vector<int32_t>& ids) const {
  TokenizedText result;
  const size_t len = ids.size() + num_special_tokens();
  result.token_ids.reserve(len);
  result.segment_ids.reserve(len);
  const auto add = [&](int32_t id, int32_t segment_id) {
    result.token_ids.push_back(id);
    result.segment_ids.push_back(segment_id);
  };
  for (const SpecialToken& special : parts_.sequence.before) add(special.id, special.segment_id);
  for (const int32_t id : ids) add(id, parts_.sequence.text_segment_id);
  for (const SpecialToken& special : parts_.sequence.after) add(special.id, special.segment_id);
  return result;
}

}  // namespace attendant
