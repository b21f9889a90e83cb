// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/bench/engine.h"

namespace attendant::bench {

// Prints {"ready": "Attendant", "isa": "..."}, then answers each line of standard input with one
// line of JSON, until it ends:
//   rate LEN ...   {"tokens_per_second": x, "tokens_per_cpu_second": x, "flops": FLOP/s}
//   latency LEN    {"times_ms": [every call's, ascending], "flops": of one call}
//   embed ID ...   {"embedding": [...]}
//   ceiling        {"flops": FLOP/s}
//   memory         {"resident_bytes": x}
// The rate is of all replicas together, latencies and embeddings are of the first replica.
// An unknown or incomplete line: {"error": "<why>"}.
void AnswerCommands(Engine& engine);

}  // namespace attendant::bench
