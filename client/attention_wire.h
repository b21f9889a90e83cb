// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "attendant/v1/attention.pb.h"
#include "client/attention.h"

namespace attendant::client {

// INVALID_ARGUMENT: no such kind, a parameter that the kind has not, or a tensor whose values are
// not as many as its shape says.
absl::StatusOr<v1::AttendRequest> ToProto(const AttendRequest& request);

// INTERNAL when sizes and shapes of the answer disagree.
absl::StatusOr<AttendResult> FromProto(const v1::AttendResponse& response);
AttentionOffer FromProto(const v1::ListAttentionResponse& response);

}  // namespace attendant::client
