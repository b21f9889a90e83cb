// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "attendant/v1/encoder.pb.h"
#include "server/batching/batcher.h"
#include "server/requests/call_state.h"
#include "server/requests/encode_run.h"

namespace attendant {

// What a request of attendant.v1 needs besides itself.
struct EncoderCall {
  EncodePipeline& pipeline;
  const Executor& executor;
  Method method;
  absl::Time deadline;
  std::shared_ptr<Cancellation> cancellation;
};

// Takes a request of attendant.v1 to its answer: decodes, runs, fills `response`, counts. `done` is
// called exactly once, perhaps inside; `request` and `response` must live until then. Large
// requests are read on `executor`.
void RunEncoderCall(const EncoderCall& call, const v1::EncodeRequest& request,
                    v1::EncodeResponse& response,
                    absl::AnyInvocable<void(const absl::Status&)> done);

}  // namespace attendant
