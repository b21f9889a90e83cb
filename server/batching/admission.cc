// SPDX-License-Identifier: Apache-2.0
#include "server/batching/admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace attendant {

namespace {

absl::Status CheckSequences(const PendingRequest& request, int64_t max_tokens) {
  if (request.sequences.empty()) return absl::InvalidArgumentError("the request has no sequences");
  for (size_t i = 0; i < request.sequences.size(); ++i) {
    const int64_t len = request.sequences[i].len();
    if (len == 0) return absl::InvalidArgumentError(absl::StrCat("sequence ", i, " has no tokens"));
    if (len > max_tokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence ", i, " has ", len, " tokens, the limit is ", max_tokens));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t CountTokens(const PendingRequest& request) {
  if (request.operation) return request.operation->tokens();
  int64_t tokens = 0;
  for (const SequenceInput& sequence : request.sequences) tokens += sequence.len();
  return tokens;
}

absl::Status CheckSize(const PendingRequest& request, const BatcherOptions& options) {
  int64_t limit = options.max_queued_tokens;
  if (request.operation) {
    limit = std::min(limit, options.max_batch_tokens);  // it cannot be shared out
  } else if (absl::Status status = CheckSequences(request, options.max_batch_tokens);
             !status.ok()) {
    return status;
  }
  const int64_t tokens = CountTokens(request);
  if (tokens <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request has ", tokens, " tokens, the limit is ", limit));
}

}  // namespace attendant
