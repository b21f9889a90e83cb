// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "server/protocols/kserve/models.h"
#include "server/requests/encode_types.h"

// The inputs of ModelInfer's requests, in the server's own words.
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

}  // namespace attendant
