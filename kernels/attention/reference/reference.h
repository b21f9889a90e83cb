// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/attention/attention.h"
#include "kernels/reference/reference_math.h"

// The parts of the references of all kinds: plain loops with sums in double.
namespace attendant::attention::reference {

using attendant::reference::Softmax;

// The score of (sequence, head, query, key) before masks; -inf where the kind leaves the key out.
using Score = absl::FunctionRef<double(int64_t, int64_t, int64_t, int64_t)>;

// out = softmax(score + mask) value for every head and query; weights where they are wanted.
// REQUIRES: the operator's `measure` accepted the call; the query has the scores' heads.
void SoftmaxAttention(const Call& call, Score score, const Outputs& outputs);

// query . key, of equal dims; head for head.
double Dot(const Call& call, int64_t sequence, int64_t head, int64_t query, int64_t key);

}  // namespace attendant::attention::reference
