// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attendant/v1/encoder.pb.h"
#include "server/models/registry/model_registry.h"
#include "server/requests/encode_run.h"

namespace attendant {

// Starts an Encode request of any transport. `response` is filled before the call's `done`.
// REQUIRES: the call's message is a TypedMessage<v1::EncodeRequest>.
void StartEncode(const EncodeDependencies& dependencies, RequestCall call,
                 v1::EncodeResponse& response);
// Adds all models but modules.
void DescribeEncoders(const ModelRegistry& models, v1::ListModelsResponse& response);

}  // namespace attendant
