// SPDX-License-Identifier: Apache-2.0
#include "server/text/pipeline.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/status_macros.h"
#include "server/text/base/aligned_text.h"
#include "server/text/base/growth.h"
#include "server/text/text_offsets.h"
#include "server/text/unicode/check_utf8.h"

namespace attendant {
namespace {

// Text is normalized in chunks of this size, cut at spaces, so that truncation saves most of the
// work, and a long text takes little memory beside its ids.
constexpr size_t kChunkBytes = 4096;
constexpr size_t kSpareIds = 1024;

}  // namespace

// A text's ids so far, as many of them as may be kept. More than `enough` need not be found.
struct TokenizerPipeline::Ids {
  std::vector<int32_t> values;
  size_t dropped = 0;  // ids that were found too
  size_t enough = 0;
  size_t room = 0;  // at most so many are kept, of the end that `side` does not cut
  TruncationSide side = TruncationSide::kRight;
  size_t normalized_room = 0;  // bytes that the rest may have when it is normalized
  absl::Status status;
  std::optional<TextOffsets> offsets;  // of the values, if asked for
  std::string normalized;              // scratch, like those below
  AlignedText aligned;
  std::vector<ByteSpan> spans;

  size_t found() const { return dropped + values.size(); }

  // Whether more are needed. Drops what is not kept now and then, so that a long text takes little
  // memory.
  bool Next() {
    if (values.size() / 2 > room + kSpareIds) Cut(room);
    return found() < enough;
  }

  void Cut(size_t kept) {
    if (values.size() <= kept) return;
    dropped += values.size() - kept;
    if (offsets.has_value()) offsets->Cut(kept, side);
    if (side == TruncationSide::kRight) return values.resize(kept);
    values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(kept));
  }

  // As if the text had no more than `most` ids.
  void Shorten(size_t most) {
    Cut(most);
    dropped = std::min(found(), most) - values.size();
  }
};

// As transformers' `longest_first`: the longer one first, and both to halves, the longer one's the
// larger, when half of the room is less than each.
void TokenizerPipeline::CutLongest(std::vector<Ids>& texts, size_t room) {
  const bool swapped = texts[0].found() > texts[1].found();
  Ids& shorter = texts[swapped ? 1 : 0];
  Ids& longer = texts[swapped ? 0 : 1];
  shorter.Cut(room / 2);
  longer.Cut(room - shorter.values.size());
}

absl::Status TokenizerPipeline::Truncate(std::vector<Ids>& texts, size_t room,
                                         PairTruncation pair) {
  if (texts.size() == 1) {
    texts[0].Cut(room);
    return absl::OkStatus();
  }
  if (pair == PairTruncation::kLongestFirst) {
    CutLongest(texts, room);
    return absl::OkStatus();
  }
  const bool first = pair == PairTruncation::kOnlyFirst;
  const size_t kept = texts[first ? 1 : 0].found();
  if (kept >= room) {
    return absl::InvalidArgumentError(
        absl::StrCat("only the ", first ? "first" : "second", " text may be cut, but the ",
                     first ? "second" : "first", " one alone has ", kept,
                     " tokens, and a pair has room for ", room));
  }
  texts[first ? 0 : 1].Cut(room - kept);
  return absl::OkStatus();
}

TokenizedText TokenizerPipeline::Join(const std::vector<Ids>& texts,
                                      std::span<const TemplatePart> sequence) {
  TokenizedText result;
  const auto append = [](const auto& values, auto& to) {
    to.insert(to.end(), values.begin(), values.end());
  };
  for (const TemplatePart& part : sequence) {
    if (part.text == TemplatePart::kSpecialToken) {
      result.token_ids.push_back(part.id);
    } else {
      const Ids& ids = texts[static_cast<size_t>(part.text)];
      append(ids.values, result.token_ids);
      if (ids.offsets.has_value()) append(ids.offsets->values(), result.offsets);
    }
    result.segment_ids.resize(result.token_ids.size(), part.segment_id);
    if (texts[0].offsets.has_value()) result.offsets.resize(result.token_ids.size());
  }
  return result;
}

absl::Status TokenizerPipeline::CheckOffsets(absl::string_view text,
                                             const TokenizerOptions& options) {
  if (options.offsets == OffsetUnit::kNone || text.size() <= TextOffsets::kMaxTextBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("offsets are told of texts up to ",
                                                 TextOffsets::kMaxTextBytes,
                                                 " bytes, this one has ", text.size()));
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
  size_t bytes = 0;
  for (const AddedToken& token : tokens) bytes += token.content.size();
  const size_t max_bytes = std::min(MaxNormalizedBytes(bytes), kMaxVocabularyBytes);
  size_t room = max_bytes;
  for (AddedToken token : tokens) {
    if (token.special) {
      special_ids_.insert(token.id);
      special_contents_.insert(token.content);
    }
    AddedTokens& group = token.normalized ? normalized_tokens_ : raw_tokens_;
    if (token.normalized && parts_.normalizer != nullptr) {
      std::string normalized;
      parts_.normalizer->Append(token.content, room, normalized);
      if (normalized.size() > room) {
        return absl::InvalidArgumentError(
            absl::StrCat("the added tokens of ", bytes, " bytes become longer than ", max_bytes,
                         " bytes, the limit, when they are normalized"));
      }
      room -= normalized.size();
      token.content = std::move(normalized);
    }
    if (token.content != TokenString(token.id)) decoded_strings_[token.id] = token.content;
    ATTENDANT_RETURN_IF_ERROR(group.Add(std::move(token)));
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenizedText> TokenizerPipeline::Tokenize(absl::string_view text,
                                                          const TokenizerOptions& options) const {
  std::span<const TemplatePart> sequence = parts_.sequence.single;
  if (!options.special_tokens) sequence = sequence.subspan(special_tokens().before, 1);
  if (options.prompt.empty()) return Assemble({&text, 1}, sequence, "text", options);
  ATTENDANT_RETURN_IF_ERROR(CheckUtf8(text));
  const std::string joined = absl::StrCat(options.prompt, text);
  const absl::string_view whole = joined;
  return Assemble({&whole, 1}, sequence, "text", options);
}

absl::StatusOr<TokenizedText> TokenizerPipeline::TokenizePair(
    absl::string_view first, absl::string_view second, const TokenizerOptions& options) const {
  if (parts_.sequence.pair.empty()) {
    return absl::InvalidArgumentError("the model's tokenizer has no template for two texts");
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
  // One more than fits tells that there was more. A refusal tells how many there were, the left end
  // goes when the right one is known, and of two texts the longer one counts.
  const bool all = options.count || !options.truncate || options.side == TruncationSide::kLeft ||
                   texts.size() > 1;
  const size_t enough = all ? std::numeric_limits<size_t>::max() : room + 1;
  std::vector<Ids> ids;
  size_t found = 0;
  for (const absl::string_view text : texts) {
    ATTENDANT_RETURN_IF_ERROR(CheckUtf8(text, ids.empty() ? "" : " of the second text"));
    ATTENDANT_RETURN_IF_ERROR(CheckOffsets(text, options));
    Ids& found_ids = ids.emplace_back();
    found_ids.enough = enough;
    found_ids.room = room;
    found_ids.side = options.side;
    found_ids.normalized_room = MaxNormalizedBytes(text.size());
    if (options.offsets != OffsetUnit::kNone) {
      found_ids.offsets.emplace(text, options.offsets, !parts_.sequence.trims.empty());
    }
    AppendText(text, found_ids);
    ATTENDANT_RETURN_IF_ERROR(found_ids.status);
    if (ids.size() == 2 && options.max_second_tokens > 0) {
      found_ids.Shorten(static_cast<size_t>(options.max_second_tokens));
    }
    found += found_ids.found();
  }
  if (found > room && !options.truncate) {
    return absl::InvalidArgumentError(absl::StrCat("the ", what, " has ", found + num_special,
                                                   " tokens, the limit is ", options.max_tokens));
  }
  if (found > room) ATTENDANT_RETURN_IF_ERROR(Truncate(ids, room, options.pair));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!ids[i].offsets.has_value()) continue;
    for (OffsetTrim trim : parts_.sequence.trims) {
      if (!options.special_tokens) trim.starts_with_text = {true, true};
      ids[i].offsets->Trim(trim, i);
    }
  }
  TokenizedText tokenized = Join(ids, sequence);
  tokenized.tokens_seen = static_cast<int64_t>(found + num_special);
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
  AddedTokenSpaces spaces;
  return raw_tokens_.Split(text, [&](const AddedTokens::Part& part) {
    if (part.id == TokenTrie::kNoId) {
      return AppendRawText({part.text, part.text.data() == text.data()}, ids);
    }
    ids.values.push_back(part.id);
    if (ids.offsets.has_value()) ids.offsets->AddLiteral(part.text, spaces);
    return ids.Next();
  });
}

bool TokenizerPipeline::AppendRawText(Piece raw, Ids& ids) const {
  while (!raw.text.empty()) {
    const std::optional<Piece> normalized = Normalize({TakeChunk(raw.text), raw.starts_input}, ids);
    if (!normalized.has_value()) return false;
    const absl::string_view text = normalized->text;
    AddedTokenSpaces spaces;
    const bool more = normalized_tokens_.Split(text, [&](const AddedTokens::Part& part) {
      const auto begin = static_cast<size_t>(part.text.data() - text.data());
      const Piece piece = normalized->Part(begin, begin + part.text.size());
      if (part.id == TokenTrie::kNoId) return AppendPieces(piece, ids);
      ids.values.push_back(part.id);
      if (ids.offsets.has_value()) ids.offsets->AddNormalized(piece, spaces);
      return ids.Next();
    });
    if (!more) return false;
    raw.starts_input = false;
  }
  return true;
}

std::optional<Piece> TokenizerPipeline::Normalize(const Piece& raw, Ids& ids) const {
  Piece normalized = raw;
  if (ids.offsets.has_value()) {
    ids.aligned = AlignedText(raw.text, ids.offsets->PlaceOf(raw.text), ids.normalized_room);
    if (parts_.normalizer != nullptr) parts_.normalizer->Align(ids.aligned);
    normalized = {ids.aligned.text(), raw.starts_input, ids.aligned.sources().data()};
  } else if (parts_.normalizer != nullptr) {
    ids.normalized.clear();
    parts_.normalizer->Append(raw.text, ids.normalized_room, ids.normalized);
    normalized.text = ids.normalized;
  }
  if (normalized.text.size() > ids.normalized_room) {
    ids.status = absl::InvalidArgumentError(absl::StrCat(
        "the model's normalizer makes the text longer than the limit: 3 times its bytes and ",
        MaxNormalizedBytes(0), " more"));
    return std::nullopt;
  }
  ids.normalized_room -= normalized.text.size();
  return normalized;
}

bool TokenizerPipeline::AppendPieces(const Piece& normalized, Ids& ids) const {
  if (parts_.pre_tokenizer == nullptr) return AppendIds(normalized, ids);
  return parts_.pre_tokenizer->Split(normalized,
                                     [&](const Piece& piece) { return AppendIds(piece, ids); });
}

bool TokenizerPipeline::AppendIds(const Piece& piece, Ids& ids) const {
  if (!ids.offsets.has_value()) {
    parts_.model->Append(piece.text, ids.values, nullptr);
    return ids.Next();
  }
  const size_t before = ids.values.size();
  ids.spans.clear();
  parts_.model->Append(piece.text, ids.values, &ids.spans);
  const int32_t by_text = parts_.model->id_called_by_text();
  for (size_t i = 0; i < ids.spans.size(); ++i) {
    const ByteSpan span = ids.spans[i];
    const int32_t id = ids.values[before + i];
    ids.offsets->Add(piece, span,
                     id == by_text ? piece.text.substr(span.begin, span.end - span.begin)
                                   : parts_.strings.Find(id));
  }
  return ids.Next();
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

absl::string_view TokenizerPipeline::DecodedString(int32_t id) const {
  const auto decoded = decoded_strings_.find(id);
  return decoded == decoded_strings_.end() ? TokenString(id) : decoded->second;
}

// As in the library, a special token that the normalizer changes is not skipped.
absl::StatusOr<std::string> TokenizerPipeline::Decode(std::span<const int32_t> ids,
                                                      bool skip_special_tokens) const {
  ATTENDANT_RETURN_IF_ERROR(parts_.decoder.status());
  std::vector<std::string> tokens;
  for (const int32_t id : ids) {
    const absl::string_view token = DecodedString(id);
    if (token.empty() || (skip_special_tokens && special_contents_.contains(token))) continue;
    tokens.emplace_back(token);
  }
  const Decoder* decoder = parts_.decoder->get();
  if (decoder == nullptr) return absl::StrJoin(tokens, " ");
  decoder->Decode(tokens);
  return absl::StrJoin(tokens, "");
}

}  // namespace attendant
