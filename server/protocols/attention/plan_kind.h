// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "attendant/v1/attention.pb.h"
#include "server/models/attention_model.h"
#include "server/protocols/attention/plan.h"

namespace attendant {

// Plans the kind and its parameters. REQUIRES: the operands are planned.
absl::Status PlanKind(const v1::AttendRequest& request, const AttentionModel& model,
                      AttendPlan& plan);

}  // namespace attendant
