// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attendant/v1/encoder.pb.h"
#include "server/models/registry/model_status.h"

namespace attendant {

// Describes an encoder. One that is not loaded, but was, is described as it was then.
void ToProto(const ModelStatus& status, v1::ModelInfo& info);

}  // namespace attendant
