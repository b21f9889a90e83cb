// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/requests/call_state.h"
#include "server/rpc/call/open_calls.h"

namespace attendant {

// How much of one stream may be unanswered or unread by its client; at the limit that client is
// held back by flow control.
struct StreamLimits {
  int64_t max_requests = 256;
  int64_t max_bytes = int64_t{32} << 20;  // of requests in work, their answers, and unread ones
};

// A bidirectional call on which every request gets one answer, as soon as it is ready. Nothing more
// is read until it is known what the answers to all that was read will take, nor while StreamLimits
// are reached: so a stream exceeds them by one request at most. The call
// ends when all that was read is answered and the client is done, has gone, or Close was called.
// Owns itself until OnDone, and is held by what it has in work. Thread-safe.
template <typename Request, typename Answer>
class AnswerStream final : public grpc::ServerBidiReactor<Request, Answer>,
                           public std::enable_shared_from_this<AnswerStream<Request, Answer>> {
 public:
  struct Exchange {
    Request request;
    Answer answer;
    std::shared_ptr<Cancellation> cancellation;
    int64_t bytes = 0;      // of the request and of the answer to come, then of the answer
    bool admitted = false;  // known what its answer takes; or answered
  };
  // Fills `answer`, whatever becomes of the request, then calls `answered`: once, perhaps inside.
  using Handler = std::function<void(Exchange& exchange, absl::AnyInvocable<void()> answered)>;

  // The stream is one of `streams` until gRPC lets go of it.
  static AnswerStream* Start(OpenCalls<AnswerStream>& streams, const StreamLimits& limits,
                             Handler handler) {
    const std::shared_ptr<AnswerStream> stream(
        new AnswerStream(streams, limits, std::move(handler)));
    stream->self_ = stream;
    {
      absl::MutexLock lock(&stream->mutex_);
      stream->Advance();
    }
    streams.Add(stream.get());
    return stream.get();
  }

  // Reads no more; the stream ends with UNAVAILABLE once all is answered.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    Advance();
  }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override {
    streams_.Remove(this);
    self_.reset();
  }

 private:
  using ExchangePtr = std::shared_ptr<Exchange>;

  AnswerStream(OpenCalls<AnswerStream>& streams, const StreamLimits& limits, Handler handler)
      : streams_(streams), limits_(limits), handler_(std::move(handler)) {}

  void Admitted(Exchange& exchange, int64_t response_bytes);
  void Answered(ExchangePtr exchange);

  // Starts whatever the state now allows: a read, a write, the end.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MaybeFinish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto requests = static_cast<int64_t>(unanswered_.size() + answered_.size());
    return reading_ == nullptr && undecided_ == 0 && !half_closed_ && !cancelled_ && !closing_ &&
           requests < limits_.max_requests && bytes_ < limits_.max_bytes;
  }

  OpenCalls<AnswerStream>& streams_;
  const StreamLimits limits_;
  const Handler handler_;
  std::shared_ptr<AnswerStream> self_;  // until OnDone

  // Held while gRPC operations are started: gRPC runs no reaction inside the call that starts one.
  absl::Mutex mutex_;
  ExchangePtr reading_ ABSL_GUARDED_BY(mutex_);  // null: no read is under way
  absl::flat_hash_set<ExchangePtr> unanswered_ ABSL_GUARDED_BY(mutex_);
  std::deque<ExchangePtr> answered_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;   // answered_.front()
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;      // of unanswered_ and answered_
  int64_t undecided_ ABSL_GUARDED_BY(mutex_) = 0;  // of unanswered_, not yet admitted
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant

#include "server/rpc/call/answer_stream_inl.h"
