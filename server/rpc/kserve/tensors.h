// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/requests/encode_types.h"
#include "server/rpc/kserve/models.h"
#include "server/rpc/kserve/parameters.h"

// The parts of ModelInfer's messages, to and from the server's own words.
namespace attendant {

// The contents of inputs that lie in shared memory, by their places in the request.
using SharedInputs = std::map<int, std::string>;

// The inputs of a ModelInfer request.
struct InferInputs {
  std::vector<SequenceContent> sequences;  // [batch]; of two texts in a row, a pair
  int64_t seq = 0;                         // of ids: the padded length, the same for all
};

// Reads a request's inputs, from raw or from typed contents (not both), or from `shared`. Integer
// inputs may be INT64 or INT32. INVALID_ARGUMENT, naming the tensor and both numbers, unless names,
// datatypes, shapes and amounts of data agree with each other and with the model. Allocates nothing
// for a shape before its data is there. Does not check the ids against the vocabulary.
absl::StatusOr<InferInputs> InputsFromProto(const inference::ModelInferRequest& request,
                                            const KServeModelInfo& model,
                                            const SharedInputs& shared = {});

// OK when every requested output is one that the model has, asked for once. None means all of them.
// UNIMPLEMENTED for shared memory of outputs whose size the texts decide (task_tensors.h).
absl::Status CheckRequestedOutputs(const inference::ModelInferRequest& request,
                                   const KServeModelInfo& model, bool shared_memory = false);

// Bytes of the output of such inputs. REQUIRES: TaskOf(model.kind) is unset.
int64_t OutputBytes(const InferInputs& inputs, const KServeModelInfo& model);

// Adds the output tensors of `model` with raw contents: embeddings [batch, dims], scores [batch,
// labels], hidden states [batch, seq, hidden] with zeros where the mask is 0, or those of a head on
// tokens (task_tensors.h). REQUIRES: `output`
// holds what the served name asks for; its ids are `seq` long each.
void ToProto(const EncodeOutput& output, const KServeModelInfo& model, int64_t seq,
             inference::ModelInferResponse& response);

// Leaves the outputs of these names, in this order; all of them without names.
void KeepOutputs(const std::vector<std::string>& names, inference::ModelInferResponse& response);

}  // namespace attendant
