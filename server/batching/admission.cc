// SPDX-License-Identifier: Apache-2.0
#include "server/batching/admission.h"

#include "absl/strings/str_cat.h"

namespace attendant {

int64_t CountTokens(const PendingRequest& request) {
  int64_t tokens = 0;
  for (const SequenceInput& sequence : request.sequences) tokens += sequence.len();
  return tokens;
}

absl::Status CheckSize(const PendingRequest& request, const BatcherOptions& options) {
  if (request.sequences.empty()) return absl::InvalidArgumentError("the request has no sequences");
  for (size_t i = 0; i < request.sequences.size(); ++i) {
    const int64_t len = request.sequences[i].len();
    if (len == 0) return absl::InvalidArgumentError(absl::StrCat("sequence ", i, " has no tokens"));
    if (len > options.max_batch_tokens) {
      return absl::InvalidArgumentError(absl::StrCat(
          "sequence ", i, " has ", len, " tokens, the limit is ", options.max_batch_tokens));
    }
  }
  const int64_t tokens = CountTokens(request);
  if (tokens > options.max_queued_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the request has ", tokens, " tokens, the limit is ", options.max_queued_tokens));
  }
  return absl::OkStatus();
}

}  // namespace attendant
