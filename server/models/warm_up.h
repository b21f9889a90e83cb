// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/core/session.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/heads/head.h"
#include "server/batching/cost_model.h"
#include "server/threads/steady_time.h"

namespace attendant {

// The clock of a measurement; a test may have one of its own.
using SteadyClock = absl::FunctionRef<absl::Time()>;

// Runs a batch of sequences of these lengths, all of token 0, with states and pooled vectors as
// outputs.
absl::Status RunZeros(Session& session, std::span<const int64_t> lens);

// Runs the smallest batch, and a full one of sequences of `max_sequence_tokens`.
// FAILED_PRECONDITION where the states of the smallest, a sequence of token 0 alone, are not
// finite: weights that spoil these spoil most texts. Others may overflow with other tokens only.
absl::Status WarmUp(Session& session, const SessionLimits& limits, int64_t max_sequence_tokens);

// Fits the session's times for batches of mixed lengths, of short and of long sequences, from one
// sequence to a full batch. Takes about half a second, or the time of eight full batches if that is
// longer.
// REQUIRES: WarmUp has run.
absl::StatusOr<CostModel> MeasureCost(Session& session, const SessionLimits& limits,
                                      int64_t max_sequence_tokens, SteadyClock now = SteadyNow);

// The nanoseconds that each head takes for a token, or for a mask that it fills: at least 1. Each
// runs twice on a few tokens, and the second time counts. `runners` are those of `heads`, on as
// many threads as `pool` has. INTERNAL when a kernel fails.
absl::StatusOr<std::vector<int64_t>> MeasureHeads(
    std::span<const std::unique_ptr<const Head>> heads,
    std::span<const std::unique_ptr<HeadRunner>> runners, const SessionLimits& limits,
    int64_t hidden, ThreadPool& pool, SteadyClock now = SteadyNow);

}  // namespace attendant
