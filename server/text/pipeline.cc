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

// Cuts one text to `room` ids, or two as transformers' `longest_first` does: the longer one first,
// and both to halves, the longer one's the larger, when half of the room is less than each.
void TokenizerPipeline::Truncate(std::vector<Ids>& texts, size_t room) {
  if (texts.size() == 1) return texts[0].values.resize(room);
  const bool swapped = texts[0].values.size() > texts[1].values.size();
  Ids& shorter = texts[swapped ? 1 : 0];
  Ids& longer = texts[swapped ? 0 : 1];
  const size_t half = room / 2;
  if (shorter.values.size() > half) shorter.values.resize(half);
  longer.values.resize(room - shorter.values.size());
}

TokenizedText TokenizerPipeline::Join(const std::vector<Ids>& texts,
                                      std::span<const TemplatePart> sequence) {
  TokenizedText result;
  for (const TemplatePart& part : sequence) {
    if (part.text == TemplatePart::kSpecialToken) {
      result.token_ids.push_back(part.id);
    } else {
      const std::vector<int32_t>& ids = texts[static_cast<size_t>(part.text)].values;
      result.token_ids.insert(result.token_ids.end(), ids.begin(), ids.end());
    }
    result.segment_ids.resize(result.token_ids.size(), part.segment_id);
  }
  return result;
}

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
  return Assemble({&text, 1}, parts_.sequence.single, "text", options);
}

absl::StatusOr<TokenizedText> TokenizerPipeline::TokenizePair(
    absl::string_view first, absl::string_view second, const TokenizerOptions& options) const {
  if (parts_.sequence.pair.empty()) {
    return absl::InvalidArgumentError("the model's tokenizer.json has no template for two texts");
  }
  const absl::string_view texts[] = {first, second};
  return Assemble(texts, parts_.sequence.pair, "pair of texts", options);
}

absl::StatusOr<TokenizedText> TokenizerPipeline::Assemble(std::span<const absl::string_view> texts,
                                                          std::span<const TemplatePart> sequence,
                                                          absl::string_view what,
                                                          const TokenizerOptions& options) const {
  const size_t num_special = sequence.size() - texts.size();
  if (options.max_tokens < static_cast<int64_t>(num_special)) {
    return absl::InvalidArgumentError(absl::StrCat("max_tokens is ", options.max_tokens,
                                                   ", the special tokens alone are ", num_special));
  }
  const auto room = static_cast<size_t>(options.max_tokens) - num_special;
  // One more than fits tells that there was more; a refusal tells how many there were, and of two
  // texts the longer one counts.
  const bool count_all = !options.truncate || texts.size() > 1;
  const size_t enough = count_all ? std::numeric_limits<size_t>::max() : room + 1;
  std::vector<Ids> ids;
  size_t found = 0;
  for (const absl::string_view text : texts) {
    if (const std::optional<size_t> offset = FindInvalidUtf8(text)) {
      return absl::InvalidArgumentError(absl::StrCat("invalid UTF-8 at byte ", *offset,
                                                     ids.empty() ? "" : " of the second text"));
    }
    AppendText(text, ids.emplace_back(Ids{{}, enough, {}}));
    found += ids.back().values.size();
  }
  if (found > room && !options.truncate) {
    return absl::InvalidArgumentError(absl::StrCat("the ", what, " has ", found + num_special,
                                                   " tokens, the limit is ", options.max_tokens));
  }
  if (found > room) Truncate(ids, room);
  TokenizedText tokenized = Join(ids, sequence);
  tokenized.truncated = found > room;
  return tokenized;
}

TokenizerPipeline::SpecialTokens TokenizerPipeline::special_tokens() const {
  const std::vector<TemplatePart>& parts = parts_.sequence.single;
  const auto text = std::find_if(parts.begin(), parts.end(), [](const TemplatePart& part) {
    return part.text != TemplatePart::kSpecialToken;
  });
  const auto before = static_cast<size_t>(text - parts.begin());
  return {.before = before, .after = parts.size() - before - 1};
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

}  // namespace attendant
