// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "client/attention.h"
#include "client/cli/format.h"

namespace attendant::client {

// "[2, 8, 16, 64]"
std::string ShapeText(const std::vector<int64_t>& shape);

// What came, in a few lines: shapes, the output's range, where the time went.
std::string Summary(const AttendRequest& request, const AttendResult& result);

std::string ModulesTable(const std::vector<AttentionModule>& modules);
nlohmann::ordered_json ToJson(const AttentionModule& module);

// The kinds, modules and limits as tables.
std::string OfferText(const AttentionOffer& offer);

// The weights of the first sequence, one block of characters for each head, at most 64 columns by
// 24 rows: the darker, the nearer to that row's largest. Rows and columns in between are averaged.
std::string WeightsStrips(const Tensor& weights);

}  // namespace attendant::client
