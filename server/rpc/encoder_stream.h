// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "attendant/v1/encoder.grpc.pb.h"
#include "server/rpc/encoder_call.h"
#include "server/rpc/encoder_service.h"

namespace attendant {

// One EncodeStream call. Requests are answered as they are ready; while StreamLimits are reached
// nothing more is read. The call ends when all that was read is answered and the client is done,
// has gone, or Close was called. Owns itself until OnDone, and is held by what it has in work.
// Thread-safe.
class EncoderStream final
    : public grpc::ServerBidiReactor<v1::EncodeRequest, v1::EncodeStreamResponse>,
      public std::enable_shared_from_this<EncoderStream> {
 public:
  // `on_done` is called once, when gRPC has let go of the stream.
  static std::shared_ptr<EncoderStream> Start(EncodePipeline& pipeline, const Executor& executor,
                                              const StreamLimits& limits, absl::Time deadline,
                                              std::function<void(EncoderStream*)> on_done);

  // Reads no more; the stream ends with UNAVAILABLE once all is answered.
  void Close();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct Exchange;  // a request and its answer

  EncoderStream(EncodePipeline& pipeline, const Executor& executor, const StreamLimits& limits,
                absl::Time deadline, std::function<void(EncoderStream*)> on_done);

  void Run(std::shared_ptr<Exchange> exchange);
  void Answered(std::shared_ptr<Exchange> exchange, const absl::Status& status);

  // Starts whatever the state now allows: a read, a write, the end.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayFinish() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  EncodePipeline& pipeline_;
  const Executor& executor_;
  const StreamLimits limits_;
  const absl::Time deadline_;
  const std::function<void(EncoderStream*)> on_done_;
  std::shared_ptr<EncoderStream> self_;  // until OnDone

  // Held while gRPC operations are started: gRPC never runs a reaction inside the call that starts
  // one.
  absl::Mutex mutex_;
  std::shared_ptr<Exchange> reading_ ABSL_GUARDED_BY(mutex_);  // null: no read is under way
  absl::flat_hash_set<std::shared_ptr<Exchange>> unanswered_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Exchange>> answered_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // answered_.front()
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;     // of unanswered_ and answered_
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant
