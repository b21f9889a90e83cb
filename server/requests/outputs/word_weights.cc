// SPDX-License-Identifier: Apache-2.0
#include "server/requests/outputs/word_weights.h"

#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/requests/invalid.h"
#include "server/text/tokenizer.h"

namespace attendant {
namespace {

// A word beside its bytes, here and in the message: a string and a weight.
constexpr int64_t kWordBytes = 96;

// The mean over the heads of each column of rows [heads, tokens].
std::vector<double> MeanOverHeads(const std::vector<float>& rows, size_t heads) {
  const size_t tokens = rows.size() / heads;
  std::vector<double> mean(tokens);
  for (size_t i = 0; i < rows.size(); ++i) mean[i % tokens] += static_cast<double>(rows[i]);
  for (double& value : mean) value /= static_cast<double>(heads);
  return mean;
}

}  // namespace

absl::Status ChooseWordWeights(const EncoderModel& model, const EncodeInput& input,
                               EncodeOutput& output) {
  if (!input.word_weights) return absl::OkStatus();
  if (input.attention_weights) {
    return Invalid("ask for attention weights or for word weights, not for both");
  }
  if (model.tokenizer == nullptr || model.tokenizer->continuing_prefix().empty()) {
    return Invalid(
        "word weights need a WordPiece tokenizer, whose tokens tell which of them "
        "continue a word; model '",
        model.name, "' has none");
  }
  const auto heads = static_cast<size_t>(model.config().heads);
  output.word_weights = true;
  output.layers.attention_layers = {static_cast<int32_t>(model.config().layers - 1)};
  output.layers.attention_heads.resize(heads);
  std::iota(output.layers.attention_heads.begin(), output.layers.attention_heads.end(), 0);
  output.layers.attention_queries = 1;
  return absl::OkStatus();
}

int64_t CountWordBytes(const EncoderModel& model, const EncodeOutput& output,
                       const EncodedSequence& sequence) {
  if (!output.word_weights) return 0;
  int64_t bytes = 0;
  for (const int32_t id : sequence.token_ids) {
    bytes += kWordBytes + 2 * static_cast<int64_t>(model.tokenizer->TokenString(id).size());
  }
  return bytes;
}

void WeighWords(const EncoderModel& model, EncodedSequence& sequence) {
  const std::vector<float> rows = std::exchange(sequence.result.attention_weights, {});
  const std::vector<double> weights =
      MeanOverHeads(rows, static_cast<size_t>(model.config().heads));
  const Tokenizer& tokenizer = *model.tokenizer;
  EncodedSequence::RareOutputs& rare = sequence.MutableRareOutputs();
  std::vector<double> sums;
  size_t unmasked = 0;
  for (size_t i = 0; i < sequence.token_ids.size(); ++i) {
    if (sequence.masked(i)) continue;
    const double weight = weights[unmasked++];
    absl::string_view token = tokenizer.TokenString(sequence.token_ids[i]);
    if (tokenizer.IsSpecial(sequence.token_ids[i])) continue;
    if (absl::ConsumePrefix(&token, tokenizer.continuing_prefix()) && !sums.empty()) {
      rare.words.back().append(token.data(), token.size());
      sums.back() += weight;
    } else {
      rare.words.emplace_back(token);
      sums.push_back(weight);
    }
  }
  rare.word_weights.assign(sums.begin(), sums.end());
}

}  // namespace attendant
