// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "inference/grpc_service.pb.h"
#include "server/requests/encode_types.h"
#include "server/rpc/kserve/models.h"

// The parts of ModelInfer's messages, to and from the server's own words.
namespace attendant {

using InferParameterMap = google::protobuf::Map<std::string, inference::InferParameter>;

struct InferParameters {
  int priority = 0;  // the server's
  absl::Duration timeout = absl::InfiniteDuration();
};

// Reads `priority` and `timeout` (microseconds; 0 is none). Ignores other parameters: they say
// nothing about an encoder. INVALID_ARGUMENT for a value of the wrong type or out of range.
absl::StatusOr<InferParameters> FromProto(const InferParameterMap& parameters);

// UNIMPLEMENTED, naming the tensor, for parameters that put it into shared memory or ask for a
// classification of an output.
absl::Status CheckTensorParameters(absl::string_view tensor, const InferParameterMap& parameters);

// The inputs of a ModelInfer request.
struct InferInputs {
  std::vector<std::variant<std::string, IdsInput>> sequences;  // [batch]
  int64_t seq = 0;  // of ids: the padded length, the same for all
};

// Reads a request's inputs, from raw or from typed contents (not both). Integer inputs may be INT64
// or INT32. INVALID_ARGUMENT, naming the tensor and both numbers, unless names, datatypes, shapes
// and amounts of data agree with each other and with the model. Allocates nothing for a shape
// before its data is there. Does not check the ids against the vocabulary.
absl::StatusOr<InferInputs> InputsFromProto(const inference::ModelInferRequest& request,
                                            const KServeModelInfo& model);

// OK when every requested output is one that the model has, asked for once. None means all of them.
absl::Status CheckRequestedOutputs(const inference::ModelInferRequest& request,
                                   const KServeModelInfo& model);

// Adds the output tensor of `model` with raw contents: pooled vectors [batch, hidden], or hidden
// states [batch, seq, hidden] with zeros where the mask is 0. REQUIRES: `output` holds what the
// served name asks for; its ids are `seq` long each.
void ToProto(const EncodeOutput& output, const KServeModelInfo& model, int64_t seq,
             inference::ModelInferResponse& response);

}  // namespace attendant
