// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/encoder/spans.h"

#include <cstddef>
#include <vector>

#include "kernels/core/status_macros.h"
#include "server/requests/invalid.h"

namespace attendant {
namespace {

absl::Status ReadSpans(int sequence, const v1::TokenSpans& proto, std::vector<TokenSpan>& spans) {
  if (proto.begins_size() != proto.ends_size()) {
    return Invalid("sequence ", sequence, ": spans has ", proto.begins_size(), " begins and ",
                   proto.ends_size(), " ends");
  }
  if (proto.begins().empty()) return Invalid("sequence ", sequence, ": spans is empty");
  spans.reserve(static_cast<size_t>(proto.begins_size()));
  for (int i = 0; i < proto.begins_size(); ++i) spans.push_back({proto.begins(i), proto.ends(i)});
  return absl::OkStatus();
}

}  // namespace

absl::Status SpansFromProto(const v1::EncodeRequest& request, EncodeInput& input) {
  input.chunk_tokens = request.outputs().pooled().chunk_tokens();
  const auto& sequences = request.sequences().sequences();
  for (int i = 0; i < sequences.size(); ++i) {
    if (!sequences[i].has_spans()) continue;
    input.spans.resize(static_cast<size_t>(sequences.size()));
    ATTENDANT_RETURN_IF_ERROR(
        ReadSpans(i, sequences[i].spans(), input.spans[static_cast<size_t>(i)]));
  }
  return absl::OkStatus();
}

void SpansToProto(std::span<const TokenSpan> spans, v1::SequenceInfo& info) {
  for (const TokenSpan& span : spans) {
    info.mutable_spans()->add_begins(span.begin);
    info.mutable_spans()->add_ends(span.end);
  }
}

}  // namespace attendant
