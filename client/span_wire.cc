// SPDX-License-Identifier: Apache-2.0
#include "client/span_wire.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace attendant::client {

absl::Status FillSpans(const EncodeRequest& request, v1::Sequences& proto) {
  if (request.spans.empty()) return absl::OkStatus();
  if (request.spans.size() != request.sequences.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the request has spans for ",
                                                   request.spans.size(), " sequences, and ",
                                                   request.sequences.size(), " sequences"));
  }
  for (size_t i = 0; i < request.spans.size(); ++i) {
    for (const TokenSpan& span : request.spans[i]) {
      v1::TokenSpans& spans = *proto.mutable_sequences(static_cast<int>(i))->mutable_spans();
      spans.add_begins(span.begin);
      spans.add_ends(span.end);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadSpans(const v1::SequenceInfo& info, SequenceInfo& sequence) {
  const v1::TokenSpans& spans = info.spans();
  if (spans.begins_size() != spans.ends_size()) {
    return absl::InternalError(absl::StrCat("the answer has a sequence with ", spans.begins_size(),
                                            " begins and ", spans.ends_size(), " ends of spans"));
  }
  for (int i = 0; i < spans.begins_size(); ++i) {
    const TokenSpan span{.begin = spans.begins(i), .end = spans.ends(i)};
    if (span.begin < 0 || span.begin > span.end || span.end > info.tokens()) {
      return absl::InternalError(absl::StrCat("the answer has the span [", span.begin, ", ",
                                              span.end, ") of a sequence of ", info.tokens(),
                                              " tokens"));
    }
    sequence.spans.push_back(span);
  }
  return absl::OkStatus();
}

int64_t CountEmbeddings(const EncodeResult& result) {
  size_t rows = 0;
  for (const SequenceInfo& info : result.sequences) rows += std::max<size_t>(info.spans.size(), 1);
  return static_cast<int64_t>(rows);
}

absl::Status ReadOffsets(const v1::TokenOffsets& offsets, SequenceInfo& sequence) {
  if (offsets.starts_size() != offsets.ends_size()) {
    return absl::InternalError(absl::StrCat("the answer has ", offsets.starts_size(),
                                            " starts and ", offsets.ends_size(),
                                            " ends of tokens"));
  }
  for (int i = 0; i < offsets.starts_size(); ++i) {
    sequence.token_offsets.emplace_back(offsets.starts(i), offsets.ends(i));
  }
  return absl::OkStatus();
}

}  // namespace attendant::client
