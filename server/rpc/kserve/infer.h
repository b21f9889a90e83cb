// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "inference/grpc_service.pb.h"
#include "server/batching/batcher.h"
#include "server/requests/call_state.h"
#include "server/requests/encode_run.h"
#include "server/rpc/kserve/models.h"

namespace attendant {

// One ModelInfer request from message to message, unary or on a stream: decode, encode, answer,
// count. Thread-safe.
class KServeInference {
 public:
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  // Large requests are read on `executor`. What is passed by reference must outlive every request.
  KServeInference(EncodePipeline& pipeline, const KServeModels& models, Executor executor)
      : pipeline_(pipeline), models_(models), executor_(std::move(executor)) {}

  // Fills `response`, counts the request, and calls `done` exactly once, perhaps inside. The
  // messages must live until then. `response` carries the request's id even when it fails.
  void Start(const inference::ModelInferRequest& request, absl::Time deadline,
             std::shared_ptr<Cancellation> cancellation, inference::ModelInferResponse& response,
             Done done);

 private:
  struct Call;

  void Submit(std::unique_ptr<Call> call);
  absl::StatusOr<EncodeInput> Decode(Call& call) const;
  void Complete(Call& call, const absl::StatusOr<EncodeOutput>& output);
  void End(Call& call, const absl::Status& status, const EncodeOutput* output,
           absl::Duration serialize);

  EncodePipeline& pipeline_;
  const KServeModels& models_;
  const Executor executor_;
};

}  // namespace attendant
