// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/core/pooling.h"
#include "server/models/encoder_model.h"
#include "server/requests/encode_types.h"

// Late chunking: embeddings of spans of a sequence, pooled from one pass over the whole sequence.
namespace attendant {

// The spans of a sequence have together at most so many times its tokens: so pooling them reads its
// states so often.
inline constexpr int64_t kMaxSpanReads = 16;

// INVALID_ARGUMENT where `input` wants spans, but its embeddings are not asked for (`embeds`), or
// one of `poolings` is not pooled over spans; or where chunk_tokens is negative.
absl::Status CheckSpans(const EncodeInput& input, bool embeds, std::span<const Pooling> poolings);

// The first token of a sequence that its embedding is pooled from: behind a prompt that the model
// leaves out.
int32_t FirstPooled(const EncoderModel& model, const EncodedSequence& sequence);

// The spans of `input`'s sequence `index`, which has become `sequence`: its own ones, or chunks of
// chunk_tokens at most from `first_pooled` on, or one with all of its tokens, however few. None if
// `input` wants no spans. INVALID_ARGUMENT names the span, and the limit. Its own ones are moved
// out of `input`.
absl::StatusOr<std::vector<TokenSpan>> ChooseSpans(EncodeInput& input, size_t index,
                                                   const EncodedSequence& sequence,
                                                   int32_t first_pooled);

// True if at least one token of `span` is pooled: it is not masked, and its position is
// `first_pooled` or later, behind a prompt that is left out.
bool HasPooledToken(const EncodedSequence& sequence, TokenSpan span, int32_t first_pooled);

}  // namespace attendant
