// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/http/doors/inputs.h"
#include "server/requests/encode_types.h"

// What the doors of rerankers share.
namespace attendant {

// A request for the sigmoid of a reranker's logits, without sequences. A model with more than one
// label refuses it.
EncodeInput ScoresInput();

// The second text of each pair. REQUIRES: all are pairs.
std::vector<std::string> SecondTexts(const Sequences& pairs);

// The indices of the sequences, the highest score first; equal ones in their order. REQUIRES: each
// has one score.
std::vector<size_t> ByScore(const EncodeOutput& output);

}  // namespace attendant
