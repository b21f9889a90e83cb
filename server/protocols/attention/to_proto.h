// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attendant/v1/attention.pb.h"
#include "server/models/registry/model_status.h"
#include "server/protocols/attention/operation.h"
#include "server/requests/formats/number_format.h"

namespace attendant {

// Fills output and attention weights, and takes them out of the operation. REQUIRES: it has run.
void ToProto(AttendOperation& operation, NumberFormat format, v1::AttendResponse& response);

// Adds every kind of the attention family.
void KindsToProto(v1::ListAttentionResponse& response);

// Describes a module. One that is not loaded, but was, is described as it was then.
void ToProto(const ModelStatus& status, v1::AttentionModuleInfo& info);

}  // namespace attendant
