// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "inference/grpc_service.pb.h"
#include "server/rpc/kserve_infer.h"

namespace attendant {

// One ModelStreamInfer call. Requests run side by side and are answered as they become ready, each
// with exactly one response, an error with the request's id; the stream ends when the client has
// half-closed and all are answered. At most kMaxInflight requests are unanswered at a time: beyond
// that the stream is not read, and HTTP/2 flow control holds the client back.
//
// Owns itself: made by the service's handler, gone after OnDone.
class KServeStream : public grpc::ServerBidiReactor<inference::ModelInferRequest,
                                                    inference::ModelStreamInferResponse> {
 public:
  static constexpr size_t kMaxInflight = 64;

  KServeStream(KServeInference& inference, EncodePipeline& pipeline, absl::Time deadline);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct Unanswered {
    std::unique_ptr<inference::ModelStreamInferResponse> response;
    EncodePipeline::Ticket ticket;
  };
  // Operations that were decided under the lock and are started after it is let go. Each of them,
  // once decided, keeps the stream from finishing until it is done.
  struct Next {
    bool read = false;
    const inference::ModelStreamInferResponse* write = nullptr;
    bool finish = false;
  };

  void StartRequest();
  void OnRequestDone(uint64_t number, const absl::Status& status);
  Next Decide() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(const Next& next);  // the last thing a reaction does: the stream may be gone after it

  KServeInference& inference_;
  EncodePipeline& pipeline_;
  const absl::Time deadline_;
  inference::ModelInferRequest request_;  // the one being read

  absl::Mutex mutex_;
  uint64_t requests_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, Unanswered> unanswered_ ABSL_GUARDED_BY(mutex_);  // by number
  std::deque<uint64_t> answers_ ABSL_GUARDED_BY(mutex_);  // to write; the first is being written
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant
