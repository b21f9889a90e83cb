// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "server/protocols/kserve/input_tensors.h"
#include "server/protocols/kserve/models.h"
#include "server/requests/encode_types.h"

// The outputs that ModelInfer's requests ask for, and those of its answers.
namespace attendant {

// OK when every requested output is one that the model has, asked for once. None means all of them.
// UNIMPLEMENTED for shared memory of outputs that are sized by the results.
absl::Status CheckRequestedOutputs(const inference::ModelInferRequest& request,
                                   const KServeModelInfo& model, bool shared_memory = false);

// Bytes of the output of such inputs. REQUIRES: the kind is not sized by the results.
int64_t OutputBytes(const InferInputs& inputs, const KServeModelInfo& model);

// The memory that padding takes, at most: outputs that are sized by the results are padded copies
// of them; others take none. REQUIRES: the task of `output` is chosen, its sequences are read.
int64_t PaddedBytes(const EncodeOutput& output, const KServeModelInfo& model);

// Adds the output tensors of `model` (served_kinds.h) with raw contents. REQUIRES: `output` holds
// what the served name asks for; its ids are `seq` long each.
void ToProto(const EncodeOutput& output, const KServeModelInfo& model, int64_t seq,
             inference::ModelInferResponse& response);

// Leaves the outputs of these names, in this order; all of them without names.
void KeepOutputs(const std::vector<std::string>& names, inference::ModelInferResponse& response);

}  // namespace attendant
