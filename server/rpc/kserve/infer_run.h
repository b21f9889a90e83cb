// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inference/grpc_service.pb.h"
#include "server/requests/encode_run.h"
#include "server/rpc/kserve/models.h"
#include "server/rpc/kserve/shared_memory.h"

namespace attendant {

// Runs one ModelInfer request, unary or of a stream, to its end (RequestRun::Start). `regions` is
// null where there is no shared memory. All references outlive the request.
void StartInfer(const EncodeDependencies& dependencies, const KServeModels& models,
                const SharedMemoryRegions* regions, RequestCall call,
                inference::ModelInferResponse& response);

}  // namespace attendant
