// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "attendant/v1/attention.pb.h"
#include "client/attention.h"

namespace attendant::client {

// INVALID_ARGUMENT: there is no such kind, the kind has no such parameter, or a tensor has another
// number of values than its shape says.
absl::StatusOr<v1::AttendRequest> ToProto(const AttendRequest& request);

// INTERNAL if sizes and shapes of the answer disagree, or are not those of an answer to `request`.
absl::StatusOr<AttendResult> FromProto(const v1::AttendResponse& response,
                                       const v1::AttendRequest& request);
AttentionOffer FromProto(const v1::ListAttentionResponse& response);

}  // namespace attendant::client
