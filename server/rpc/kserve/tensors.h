// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "server/requests/encode_run.h"
#include "server/rpc/kserve/metadata.h"

namespace attendant {

// The inputs of a ModelInfer request.
struct InferInputs {
  std::vector<std::variant<std::string, IdsInput>> sequences;  // [batch]
  int64_t seq = 0;  // of ids: the padded length, the same for all
};

// Reads a request's inputs, in either form (raw or typed contents, not both). Integer inputs may be
// INT64 or INT32. INVALID_ARGUMENT, naming the tensor and both numbers, unless names, datatypes,
// shapes and amounts of data agree with each other and with the model; what a shape declares costs
// nothing until its data is there. Whether the ids are in the vocabulary is the pipeline's
// question.
absl::StatusOr<InferInputs> DecodeInferInputs(const inference::ModelInferRequest& request,
                                              const ServedModel& model);

// OK when every requested output is one the model has, asked for once. None means all of them.
absl::Status CheckRequestedOutputs(const inference::ModelInferRequest& request,
                                   const ServedModel& model);

// Adds the output tensor of `model` with its raw contents: pooled vectors [batch, hidden], or
// hidden states [batch, seq, hidden], zeros where the mask was 0. REQUIRES: `output` holds what the
// served name asks for, its ids `seq` long each.
void AppendInferOutput(const EncodeOutput& output, const ServedModel& model, int64_t seq,
                       inference::ModelInferResponse& response);

}  // namespace attendant
