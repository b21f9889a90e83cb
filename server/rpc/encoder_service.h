// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "attendant/v1/encoder.grpc.pb.h"
#include "server/batching/batcher.h"
#include "server/rpc/encode_pipeline.h"

namespace attendant {

class EncoderStream;

// How much of one stream may be unanswered; at the limit its client is held back by flow control.
struct StreamLimits {
  int64_t max_requests = 256;
  int64_t max_bytes = int64_t{32} << 20;  // requests in work and answers not yet sent
};

// attendant.v1.Encoder on gRPC's callback API: no call has a thread of its own. Thread-safe.
class EncoderService final : public v1::Encoder::CallbackService {
 public:
  // `pipeline` must outlive the service. Large requests are read on `executor`.
  EncoderService(EncodePipeline& pipeline, Executor executor, const StreamLimits& limits = {});

  grpc::ServerUnaryReactor* Encode(grpc::CallbackServerContext* context,
                                   const v1::EncodeRequest* request,
                                   v1::EncodeResponse* response) override;
  grpc::ServerBidiReactor<v1::EncodeRequest, v1::EncodeStreamResponse>* EncodeStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;

  // Ends every stream with UNAVAILABLE once all that it has read is answered; new ones at once.
  void CloseStreams();

 private:
  void RemoveStream(EncoderStream* stream);

  EncodePipeline& pipeline_;
  const Executor executor_;
  const StreamLimits stream_limits_;

  absl::Mutex mutex_;  // taken before a stream's own
  absl::flat_hash_set<EncoderStream*> streams_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant
