// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/models/encoder_model.h"
#include "server/requests/encode_types.h"

// The parts that the protocols of rerankers share.
namespace attendant {

// A query, once for each text, has at most so many bytes: it is tokenized so often.
inline constexpr int64_t kMaxQueryBytes = int64_t{4} << 20;
// INVALID_ARGUMENT, naming `field`, for more.
absl::Status CheckQuery(absl::string_view field, absl::string_view query, int64_t texts);

// True if `model` is a reranker, with one score for a query and a text: a classifier with one
// label, or a model of late interaction (outputs/late_scores.h).
bool CanRank(const EncoderModel& model);

// A request for the sigmoid of a reranker's logits, without sequences. A model that compares
// vectors gives their sums as they are. One with more than one label refuses it.
EncodeInput ScoresInput();

// The second text of each pair. REQUIRES: all are pairs.
std::vector<std::string> SecondTexts(const std::vector<SequenceContent>& pairs);

// Indices, the highest score first and NaN last; equal ones in their order.
std::vector<size_t> ByScore(std::span<const float> scores);
// The indices of the sequences of `output` in that order. Each sequence has one score.
std::vector<size_t> ByScore(const EncodeOutput& output);

}  // namespace attendant
