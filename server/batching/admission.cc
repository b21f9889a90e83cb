// SPDX-License-Identifier: Apache-2.0
#include "server/batching/admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

absl::Status CheckSequences(const EncodeWork& work, int64_t max_tokens) {
  if (work.sequences.empty()) return absl::InvalidArgumentError("the request has no sequences");
  for (size_t i = 0; i < work.sequences.size(); ++i) {
    const int64_t len = work.sequences[i].len();
    if (len == 0) return absl::InvalidArgumentError(absl::StrCat("sequence ", i, " has no tokens"));
    if (len > max_tokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence ", i, " has ", len, " tokens, the limit is ", max_tokens));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSize(const PendingRequest& request, const BatcherOptions& options) {
  int64_t limit = options.max_queued_tokens;
  if (request.is_operation()) {
    limit = std::min(limit, options.max_batch_tokens);  // it runs in one batch
  } else if (absl::Status status = CheckSequences(request.encode(), options.max_batch_tokens);
             !status.ok()) {
    return status;
  }
  const int64_t tokens = request.tokens();
  if (tokens <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request has ", tokens, " tokens, the limit is ", limit));
}

}  // namespace attendant
