// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/attention/attention.h"

// The one way in which calls are checked: every operator's `measure` is made of these.
namespace attendant::attention {

// No size in a call, and no product of sizes, is beyond this: everything can be indexed, and sums
// of a few of them do not overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 48;

// `factors` multiplied; INVALID_ARGUMENT naming `what` and the factors when one is negative or the
// product is beyond kMaxElements.
absl::StatusOr<int64_t> CheckedProduct(absl::string_view what,
                                       std::initializer_list<int64_t> factors);

// INVALID_ARGUMENT unless starts begin with 0 and never fall, and the batch is at least 1.
absl::Status CheckSequences(absl::string_view what, const Sequences& sequences);

// Checks that hold for every kind: a dtype that operators have, as many query as key sequences, at
// least one head and one dim, masks that fit, a finite scale, no negative window but -1; and
// weights only where the kind gives them. Masks apply to scores of `score_heads` heads.
absl::Status CheckCall(const Call& call, int64_t score_heads, bool gives_weights);

// INVALID_ARGUMENT with both numbers unless they are equal: "query has 64 dims a head, key has 48".
absl::Status CheckEqual(absl::string_view a_name, int64_t a, absl::string_view b_name, int64_t b,
                        absl::string_view unit);

// The call's parameter; INVALID_ARGUMENT when it is absent or not [rows, columns], naming both
// shapes. A dimension of -1 may be any from 1 on.
absl::StatusOr<TensorView<const float, 2>> RequireParameter(const Call& call,
                                                            absl::string_view name, int64_t rows,
                                                            int64_t columns);

// True if the call has the parameter `name`.
bool HasParameter(const Call& call, absl::string_view name);

// INVALID_ARGUMENT where a scale came with the call, for kinds that have none.
absl::Status RefuseScale(const Call& call);

// Adds the products of these factors to cost.operations.
absl::Status AddOperations(std::initializer_list<std::initializer_list<int64_t>> products,
                           Cost& cost);

// The work of a kind beside its scores, in operations for each head and
struct Overheads {
  int64_t sequence = 0;
  int64_t query = 0;
  int64_t key = 0;
  int64_t score = 0;  // pair of a query and a key
};

// Adds them to cost.operations, with `scores` pairs in each head; never refuses.
void AddOverheads(const Call& call, int64_t scores, const Overheads& each, Cost& cost);

// Adds `operations` for each of `count` things of each head to cost.operations; never refuses.
void AddOverhead(const Call& call, int64_t count, int64_t operations, Cost& cost);

// Fills out_* and weights_*. REQUIRES: CheckCall accepted the call.
absl::StatusOr<Cost> OutputCost(const Call& call, int64_t out_heads, int64_t out_dim,
                                int64_t score_heads);

// Sum over sequences of queries * keys. REQUIRES: CheckCall accepted the call.
absl::StatusOr<int64_t> ScorePairs(const Call& call);

// The number of (query, key) pairs that causal and window leave, about. REQUIRES: ScorePairs
// accepted the call.
int64_t SeenPairs(const Call& call);

// True if a mask beside causal and window applies to scores: mask tensor, key mask or ALiBi.
bool HasKeyBiases(const Call& call);

// The offset in floats of a sequence's weights [heads or 1, queries, keys] in
// Outputs::attention_weights. `weights_heads` is Cost's. REQUIRES: CheckCall accepted the call.
int64_t WeightsOffset(const Call& call, int64_t weights_heads, int64_t sequence);

}  // namespace attendant::attention
