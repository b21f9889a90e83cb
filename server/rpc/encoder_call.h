// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "attendant/v1/encoder.pb.h"
#include "server/batching/batcher.h"
#include "server/rpc/encode_pipeline.h"

namespace attendant {

// Lets a caller give up a request at any time: before it was submitted, after, or when it has long
// been answered. Thread-safe.
class Cancellation {
 public:
  explicit Cancellation(EncodePipeline& pipeline) : pipeline_(pipeline) {}

  void Cancel();
  bool cancelled() const;

  // The request that Cancel is for, once it has been submitted.
  void SetTicket(const EncodePipeline::Ticket& ticket);

 private:
  EncodePipeline& pipeline_;
  mutable absl::Mutex mutex_;
  EncodePipeline::Ticket ticket_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

// What a request of attendant.v1 needs besides itself.
struct EncoderCall {
  EncodePipeline& pipeline;
  const Executor& executor;
  Method method;
  absl::Time deadline;
  std::shared_ptr<Cancellation> cancellation;
};

// Takes a request of attendant.v1 to its answer: decodes, runs, fills `response`, counts. `done` is
// called exactly once, perhaps inside. Small requests are tokenized on the caller's thread, larger
// ones on `executor`. `request` and `response` must live until then.
void RunEncoderCall(const EncoderCall& call, const v1::EncodeRequest& request,
                    v1::EncodeResponse& response,
                    absl::AnyInvocable<void(const absl::Status&)> done);

}  // namespace attendant
