// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "attendant/v1/attention.pb.h"
#include "server/protocols/attention/plan.h"

namespace attendant {

// Plans query, key, value and their lengths.
absl::Status PlanOperands(const v1::AttendRequest& request, AttendPlan& plan);

}  // namespace attendant
