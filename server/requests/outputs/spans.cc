// SPDX-License-Identifier: Apache-2.0
#include "server/requests/outputs/spans.h"

#include <algorithm>
#include <utility>

#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "server/requests/invalid.h"

namespace attendant {
namespace {

absl::Status CheckSpan(size_t sequence, size_t index, TokenSpan span, int64_t len) {
  if (span.begin < 0 || span.end > len) {
    return Invalid("sequence ", sequence, ": spans[", index, "] is [", span.begin, ", ", span.end,
                   "), the sequence has ", len, " tokens");
  }
  if (span.begin < span.end) return absl::OkStatus();
  return Invalid("sequence ", sequence, ": spans[", index, "] is [", span.begin, ", ", span.end,
                 "), it has no token");
}

absl::Status CheckOwnSpans(size_t sequence, std::span<const TokenSpan> spans, int64_t len) {
  if (static_cast<int64_t>(spans.size()) > len) {
    return Invalid("sequence ", sequence, " has ", spans.size(), " spans, the limit is its ", len,
                   " tokens");
  }
  int64_t tokens = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    ATTENDANT_RETURN_IF_ERROR(CheckSpan(sequence, i, spans[i], len));
    tokens += spans[i].end - spans[i].begin;
  }
  if (tokens <= kMaxSpanReads * len) return absl::OkStatus();
  return Invalid("sequence ", sequence, ": its spans have ", tokens, " tokens, the limit is ",
                 kMaxSpanReads, " times the ", len, " tokens of the sequence");
}

// [begin, end) in as few spans as have at most `most` tokens each, their lengths as equal as can
// be. Without tokens, it is one empty span.
std::vector<TokenSpan> Cut(int64_t begin, int64_t end, int64_t most) {
  const int64_t count = std::max<int64_t>(CeilDivide(end - begin, most), 1);
  const auto edge = [&](int64_t i) {
    return static_cast<int32_t>(begin + i * (end - begin) / count);
  };
  std::vector<TokenSpan> spans;
  for (int64_t i = 0; i < count; ++i) spans.push_back({edge(i), edge(i + 1)});
  return spans;
}

}  // namespace

absl::Status CheckSpans(const EncodeInput& input, bool embeds, std::span<const Pooling> poolings) {
  if (!input.wants_spans()) return absl::OkStatus();
  if (!embeds) {
    return Invalid("spans are of pooled embeddings: ask for `pooled` with spans or chunk_tokens");
  }
  if (input.chunk_tokens < 0) {
    return Invalid("chunk_tokens is ", input.chunk_tokens, ", it must be at least 0");
  }
  if (std::all_of(poolings.begin(), poolings.end(), IsPooledOverSpans)) return absl::OkStatus();
  return Invalid(
      "spans need the pooling mean, max, mean_sqrt_len or weighted_mean; cls and last, which the "
      "model has or the request asks for, are one token of the sequence");
}

int32_t FirstPooled(const EncoderModel& model, const EncodedSequence& sequence) {
  return model.sentence.include_prompt ? 0 : static_cast<int32_t>(sequence.prompt_tokens);
}

absl::StatusOr<std::vector<TokenSpan>> ChooseSpans(EncodeInput& input, size_t index,
                                                   const EncodedSequence& sequence,
                                                   int32_t first_pooled) {
  if (!input.wants_spans()) return std::vector<TokenSpan>();
  const int64_t len = sequence.len();
  if (index < input.spans.size() && !input.spans[index].empty()) {
    ATTENDANT_RETURN_IF_ERROR(CheckOwnSpans(index, input.spans[index], len));
    return std::move(input.spans[index]);
  }
  const int64_t begin = first_pooled < len ? first_pooled : 0;
  return Cut(begin, len, input.chunk_tokens > 0 ? input.chunk_tokens : std::max<int64_t>(len, 1));
}

bool HasPooledToken(const EncodedSequence& sequence, TokenSpan span, int32_t first_pooled) {
  for (int32_t i = std::max(span.begin, first_pooled); i < span.end; ++i) {
    if (!sequence.masked(static_cast<size_t>(i))) return true;
  }
  return false;
}

}  // namespace attendant
