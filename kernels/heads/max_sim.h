// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace attendant {

// Late interaction, as ColBERT scores a document: the sum over the vectors of `query` [n, dims] of
// the largest dot product with a vector of `document` [m, dims]. 0 where one of the two has none.
// In f32, in an order that the sizes alone decide. REQUIRES: dims > 0.
float MaxSim(std::span<const float> query, std::span<const float> document, int64_t dims);

}  // namespace attendant
