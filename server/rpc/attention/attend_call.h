// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "attendant/v1/attention.pb.h"
#include "server/batching/batcher.h"
#include "server/metrics/server_metrics.h"
#include "server/models/model_registry.h"
#include "server/requests/call_state.h"
#include "server/requests/memory_budgets.h"

namespace attendant {

// What all requests of attendant.v1.Attention need. Everything outlives them.
struct AttentionServing {
  ModelRegistry& models;
  ServerMetrics& metrics;
  MemoryBudgets& budgets;
  AttentionLimits limits;
  int64_t max_request_bytes = 0;   // gRPC's own limit, for ListAttention
  int64_t max_response_bytes = 0;  // tensors of one answer, as f32
};

struct AttendCall {
  const AttentionServing& serving;
  const Executor& executor;
  Method method;
  absl::Time deadline;
  std::shared_ptr<Cancellation> cancellation;
};

// Takes a request to its answer: finds the model, checks, measures, queues, fills `response`,
// counts. `done` is called exactly once, perhaps inside; `request` and `response` must live until
// then. Large requests are read on `executor`.
void RunAttendCall(const AttendCall& call, const v1::AttendRequest& request,
                   v1::AttendResponse& response,
                   absl::AnyInvocable<void(const absl::Status&)> done);

}  // namespace attendant
