// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "inference/grpc_service.pb.h"
#include "server/rpc/encode_pipeline.h"
#include "server/rpc/kserve_models.h"

namespace attendant {

// One ModelInfer request from message to message, unary or on a stream: decode, encode, answer,
// count. Thread-safe.
class KServeInference {
 public:
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // What is passed must outlive every request.
  KServeInference(EncodePipeline& pipeline, const KServeModels& models)
      : pipeline_(pipeline), models_(models) {}

  // Fills `response`, counts the request, and calls `done` exactly once: inside Start when the
  // request is refused, else later on the completion executor. `request` is read inside Start only;
  // `response` must live until `done` and keeps the request's id even when it fails.
  EncodePipeline::Ticket Start(const inference::ModelInferRequest& request, absl::Time deadline,
                               inference::ModelInferResponse* response, Done done);

 private:
  struct Call;

  absl::StatusOr<EncodeInput> Decode(const inference::ModelInferRequest& request,
                                     absl::Time deadline, Call& call) const;
  void Complete(Call& call, const absl::StatusOr<EncodeOutput>& output);
  void Count(const Call& call, const absl::Status& status, const EncodeOutput* output,
             absl::Duration serialize);

  EncodePipeline& pipeline_;
  const KServeModels& models_;
};

}  // namespace attendant
