// SPDX-License-Identifier: Apache-2.0
#include "server/requests/encode_output.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

// Each of [0, count), and none twice: so no list is longer than the model.
absl::Status CheckNumbers(absl::string_view field, std::span<const int32_t> numbers, int64_t count,
                          absl::string_view what) {
  std::vector<bool> seen(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int32_t number = numbers[i];
    if (number < 0 || number >= count) {
      return absl::InvalidArgumentError(absl::StrCat(field, "[", i, "] is ", number,
                                                     ", it must be from 0 to ", count - 1,
                                                     " (the model has ", what, ")"));
    }
    if (seen[static_cast<size_t>(number)]) {
      return absl::InvalidArgumentError(absl::StrCat(field, "[", i, "] is ", number, " again"));
    }
    seen[static_cast<size_t>(number)] = true;
  }
  return absl::OkStatus();
}

std::vector<int32_t> OrAll(const std::vector<int32_t>& numbers, int64_t count) {
  if (!numbers.empty()) return numbers;
  std::vector<int32_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The indices of the tokens that the mask keeps.
std::vector<size_t> UnmaskedTokens(const EncodedSequence& sequence) {
  std::vector<size_t> kept;
  for (size_t i = 0; i < sequence.attention_mask.size(); ++i) {
    if (sequence.attention_mask[i] != 0) kept.push_back(i);
  }
  return kept;
}

}  // namespace

absl::StatusOr<LayerSelection> ChooseLayers(const EncoderConfig& config, const EncodeInput& input) {
  const std::string layers = absl::StrCat(config.layers, " layers");
  const std::string heads = absl::StrCat(config.heads, " heads");
  ATTENDANT_RETURN_IF_ERROR(
      CheckNumbers("attention_weights.layers", input.attention_layers, config.layers, layers));
  ATTENDANT_RETURN_IF_ERROR(
      CheckNumbers("attention_weights.heads", input.attention_heads, config.heads, heads));
  ATTENDANT_RETURN_IF_ERROR(
      CheckNumbers("hidden_layers", input.hidden_layers, config.layers + 1, layers));
  LayerSelection selection;
  selection.hidden_layers = input.hidden_layers;
  selection.hidden = config.hidden;
  if (input.attention_weights) {
    selection.attention_layers = OrAll(input.attention_layers, config.layers);
    selection.attention_heads = OrAll(input.attention_heads, config.heads);
  }
  return selection;
}

void AppendAttentionWeights(const EncodedSequence& sequence, int64_t maps, NumberFormat format,
                            std::string& bytes) {
  if (sequence.attention_mask.empty()) {
    return AppendValues(sequence.result.attention_weights, format, bytes);
  }
  const size_t len = sequence.token_ids.size();
  const std::vector<size_t> kept = UnmaskedTokens(sequence);
  const float* next = sequence.result.attention_weights.data();
  std::vector<float> row(len);
  for (int64_t map = 0; map < maps; ++map) {
    for (size_t query = 0; query < len; ++query) {
      std::fill(row.begin(), row.end(), 0.0f);
      if (sequence.attention_mask[query] != 0) {
        for (const size_t key : kept) row[key] = *next++;
      }
      AppendValues(row, format, bytes);
    }
  }
}

void AppendHiddenState(const EncodedSequence& sequence, int64_t hidden, const float* values,
                       NumberFormat format, std::string& bytes) {
  const size_t count = sequence.token_ids.size() * static_cast<size_t>(hidden);
  if (sequence.attention_mask.empty()) return AppendValues({values, count}, format, bytes);
  std::vector<float> rows(count);
  ScatterRows(sequence, hidden, values, rows.data());
  AppendValues(rows, format, bytes);
}

}  // namespace attendant
