// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/ranking.h"

#include <algorithm>
#include <numeric>
#include <variant>

namespace attendant {

EncodeInput ScoresInput() {
  EncodeInput input;
  input.scores = input.one_score = true;
  input.score_activation = ScoreActivation::kSigmoid;
  input.truncation = Truncation::kRight;
  return input;
}

std::vector<std::string> SecondTexts(const Sequences& pairs) {
  std::vector<std::string> texts;
  for (const SequenceContent& pair : pairs) texts.push_back(std::get<TextPair>(pair).second);
  return texts;
}

std::vector<size_t> ByScore(const EncodeOutput& output) {
  std::vector<size_t> order(output.sequences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&output](size_t a, size_t b) {
    return output.sequences[a].scores[0] > output.sequences[b].scores[0];
  });
  return order;
}

}  // namespace attendant
