// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "client/attention.h"
#include "client/cli/format.h"

namespace attendant::client {

// "[2, 8, 16, 64]"
std::string ShapeText(const std::vector<int64_t>& shape);

// A summary of the answer in a few lines: shapes, the range of the output, timings.
std::string Summary(const AttendRequest& request, const AttendResult& result);

std::string ModulesTable(const std::vector<AttentionModule>& modules);
nlohmann::ordered_json ToJson(const AttentionModule& module);

// The kinds, modules and limits as tables.
std::string OfferText(const AttentionOffer& offer);

// The attention weights of the first sequence, a block of characters for each head, at most 64
// columns by 24 rows. A darker character is nearer to the largest weight of its row. Larger
// matrices are averaged.
std::string WeightsStrips(const Tensor& weights);

}  // namespace attendant::client
