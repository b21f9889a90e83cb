// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "inference/grpc_service.pb.h"
#include "server/requests/encode_types.h"
#include "server/rpc/kserve/models.h"

// The results of heads on tokens as tensors. Their rows differ in number from text to text: each
// tensor is padded to the longest, integers with -1 and numbers with 0.
//
//   NAME.sparse         indices [n, weights] INT32, weights [n, weights] FP32
//   NAME.masks          tokens [n, masks] INT32, indices [n, masks, k] INT32, scores [n, masks, k]
//   NAME.tokens         token_ids [n, len] INT32, scores [n, len, labels] FP32
//   NAME.multi_vectors  tokens [n, vectors] INT32, vectors [n, vectors, dims] FP32
//
// `tokens` are places in the sequence: of the mask, and of the token that a vector is of.
namespace attendant {

// REQUIRES: TaskOf(model.kind) is set.
std::vector<TensorSpec> TaskOutputSpecs(const KServeModelInfo& model);

// The memory of these tensors, at most. REQUIRES: the one task of `output` is chosen, its sequences
// are read.
int64_t TaskOutputBytes(const EncodeOutput& output);

// Adds all of them, with raw contents. REQUIRES: TaskOf(model.kind) is set, and the one task of
// `output` is its.
void TaskOutputsToProto(const EncodeOutput& output, const KServeModelInfo& model,
                        inference::ModelInferResponse& response);

}  // namespace attendant
