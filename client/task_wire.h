// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "attendant/v1/encoder.pb.h"
#include "client/types.h"

// The outputs of heads on tokens, and the weights of words, to and from messages.
namespace attendant::client {

void FillTasks(const EncodeRequest& request, v1::OutputSelection& outputs);

// INTERNAL when the answer contradicts itself. REQUIRES: result.sequences is filled.
absl::Status ReadTasks(const v1::EncodeResponse& response, EncodeResult& result);

}  // namespace attendant::client
