// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "attendant/v1/attention.pb.h"
#include "server/protocols/attention/plan.h"

namespace attendant {

// Plans masks and positions. Masks and ALiBi have the heads of the scores. REQUIRES: the kind is
// planned.
absl::Status PlanMasks(const v1::AttendRequest& request, AttendPlan& plan);
absl::Status PlanPositions(const v1::AttendRequest& request, AttendPlan& plan);

}  // namespace attendant
