// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load/payload.h"
#include "inference/grpc_service.pb.h"

namespace attendant::client {

// Of a model, what its metadata and configuration say about requests.
struct KserveModel {
  struct Input {
    std::string name;
    std::string datatype;       // BYTES, INT64, INT32 or FP32
    std::vector<int64_t> dims;  // without the batch dimension; -1 is any size
  };
  std::string name;
  int64_t max_batch_size = 0;  // 0: requests have no batch dimension
  std::vector<Input> inputs;

  // Whether one of the inputs is a mask, by which tokens that pad a row are told from others.
  bool has_mask() const;
};

// FAILED_PRECONDITION, naming the input, for a datatype that cannot be made up.
absl::StatusOr<KserveModel> ToKserveModel(const inference::ModelMetadataResponse& metadata,
                                          int64_t max_batch_size);

// Replaces the dims of inputs by "NAME:8,16" (-1 stays as it is).
absl::Status ApplyShapes(const std::vector<std::string>& shapes, KserveModel& model);

// A request with a value for every input, and how many tokens it carries (0: unknown). What an
// input holds follows from its type and name: BYTES are texts; "*mask*" is 1 for tokens and 0 for
// padding;
// "*type*" and "*segment*" are 0; all other numbers are token ids. The first -1 of its dims is the
// length of the longest sequence; without a mask to mark padding, all sequences get the length of
// the first.
struct KserveRequest {
  inference::ModelInferRequest proto;
  int64_t tokens = 0;
};
absl::StatusOr<KserveRequest> MakeKserveRequest(const KserveModel& model, const Payload& payload);

}  // namespace attendant::client
