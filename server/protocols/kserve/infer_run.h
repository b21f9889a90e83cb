// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "inference/grpc_service.pb.h"
#include "server/protocols/kserve/models.h"
#include "server/protocols/kserve/shared_memory.h"
#include "server/requests/encode_run.h"

namespace attendant {

// Access to the parsed message of a ModelInfer request: each transport holds it in its own type.
struct InferMessageAccess {
  const inference::ModelInferRequest& (*request)(const RequestMessage& message);
  // The bytes of an output value in the answer beyond its f32, where it becomes text.
  int64_t (*text_bytes)(const RequestMessage& message);
};

// Runs one ModelInfer request, unary or of a stream, to its end (RequestRun::Start). `regions` is
// null where there is no shared memory. All references outlive the request.
void StartInfer(const EncodeDependencies& dependencies, const KServeModels& models,
                const SharedMemoryRegions* regions, const InferMessageAccess& access,
                RequestCall call, inference::ModelInferResponse& response);

}  // namespace attendant
