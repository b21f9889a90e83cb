// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load/payload.h"
#include "inference/grpc_service.pb.h"

namespace attendant::client {

// The parts of a model's metadata and configuration that requests depend on.
struct KserveModel {
  struct Input {
    std::string name;
    std::string datatype;       // BYTES, INT64, INT32 or FP32
    std::vector<int64_t> dims;  // without the batch dimension; -1 is any size
  };
  std::string name;
  int64_t max_batch_size = 0;  // 0: requests have no batch dimension
  std::vector<Input> inputs;

  // True if an input is an attention mask.
  bool has_mask() const;
  // True if an input has texts.
  bool takes_texts() const;
};

// FAILED_PRECONDITION names an input whose datatype the load generator cannot fill.
absl::StatusOr<KserveModel> ToKserveModel(const inference::ModelMetadataResponse& metadata,
                                          int64_t max_batch_size);

// The model that requests are made for. Without a configuration, which is Triton's addition to the
// protocol, requests have no batch dimension. FAILED_PRECONDITION: it cannot be loaded, or `shapes`
// do not fit (ApplyShapes).
absl::StatusOr<KserveModel> DescribeKserveModel(const inference::ModelMetadataResponse& metadata,
                                                const inference::ModelConfig& config,
                                                const std::vector<std::string>& shapes);

// Replaces the dims of inputs by those of "NAME:8,16"; -1 stays -1. FAILED_PRECONDITION if a shape
// names no input, or not all dims of it.
absl::Status ApplyShapes(const std::vector<std::string>& shapes, KserveModel& model);

// A request with values for every input, and the number of its tokens (0: unknown). Datatype and
// name of an input say what it holds: BYTES are texts; "*mask*" is 1 for tokens and 0 for padding;
// "*type*" and "*segment*" are 0; all other numbers are token ids. The first -1 of its dims becomes
// the length of the longest sequence. Without a mask, all sequences get the length of the first.
struct KserveRequest {
  inference::ModelInferRequest proto;
  int64_t tokens = 0;
};
// FAILED_PRECONDITION if the batch is too large, or an input does not fit the payload.
absl::StatusOr<KserveRequest> MakeKserveRequest(const KserveModel& model, const Payload& payload);

}  // namespace attendant::client
