// SPDX-License-Identifier: Apache-2.0
#include "server/requests/ranking.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

#include "absl/strings/str_cat.h"
#include "server/requests/only_model.h"

namespace attendant {

absl::Status CheckQuery(absl::string_view field, absl::string_view query, int64_t texts) {
  if (texts == 0 || static_cast<int64_t>(query.size()) <= kMaxQueryBytes / texts) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(field, " has ", query.size(), " bytes for ", texts,
                                                 " texts, the limit is ", kMaxQueryBytes,
                                                 " for all together"));
}

bool CanRank(const EncoderModel& model) { return Ranks(model.Facts()); }

EncodeInput ScoresInput() {
  EncodeInput input;
  input.scores = input.one_score = true;
  input.score_activation = ScoreActivation::kSigmoid;
  input.truncation = Truncation::kRight;
  return input;
}

std::vector<std::string> SecondTexts(const std::vector<SequenceContent>& pairs) {
  std::vector<std::string> texts;
  for (const SequenceContent& pair : pairs) texts.push_back(std::get<TextPair>(pair).second);
  return texts;
}

std::vector<size_t> ByScore(std::span<const float> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [scores](size_t a, size_t b) {
    return scores[a] > scores[b] || (std::isnan(scores[b]) && !std::isnan(scores[a]));
  });
  return order;
}

std::vector<size_t> ByScore(const EncodeOutput& output) {
  std::vector<float> scores;
  for (const EncodedSequence& sequence : output.sequences) scores.push_back(sequence.scores[0]);
  return ByScore(scores);
}

}  // namespace attendant
