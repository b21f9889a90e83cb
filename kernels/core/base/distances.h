// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

// The terms that attention adds to scores by the distance between two tokens.
namespace attendant {

// ALiBi's slopes (Press, Smith, Lewis 2022): 2^(-8 (h + 1) / heads) for a power of two of heads;
// else those of the largest power of two below, and then every other one of twice that power, as
// the paper's code has it. REQUIRES: heads >= 1.
std::vector<float> AlibiSlopes(int64_t heads);

// The bucket of the distance from a query to a key, as T5 has it (Raffel et al. 2020): the first
// half of `buckets` is for keys before the query and itself, the second for keys behind it. Of a
// half, the first half is one bucket a distance; the rest is logarithmic up to `max_distance`, and
// its last bucket holds all beyond. REQUIRES: buckets is a multiple of 4, max_distance > buckets
// / 4.
int64_t DistanceBucket(int64_t distance, int64_t buckets, int64_t max_distance);

// The bucket of the distance from a query to a key in disentangled attention, as transformers'
// DeBERTa v2 has it (He et al. 2021, and log buckets): of `buckets`, the middle one is for the
// distance 0, those below are for keys behind the query. Up to a quarter of `buckets` steps are one
// bucket each, further ones logarithmic up to `max_distance`. REQUIRES: buckets is a multiple of 4,
// max_distance > buckets / 4 + 1.
int64_t DisentangledBucket(int64_t distance, int64_t buckets, int64_t max_distance);

}  // namespace attendant
