// SPDX-License-Identifier: Apache-2.0
#include "server/requests/encode_types.h"

#include <algorithm>
#include <vector>

namespace attendant {

void ScatterRows(const EncodedSequence& sequence, int64_t hidden, const float* values,
                 float* rows) {
  const float* next = values;
  for (size_t i = 0; i < sequence.token_ids.size(); ++i, rows += hidden) {
    if (sequence.masked(i)) {
      std::fill_n(rows, hidden, 0.0f);
    } else {
      std::copy_n(next, hidden, rows);
      next += hidden;
    }
  }
}

void AppendHiddenState(const EncodedSequence& sequence, int64_t hidden, const float* values,
                       NumberFormat format, std::string& bytes) {
  const size_t count = static_cast<size_t>(sequence.len() * hidden);
  if (sequence.attention_mask.empty()) return AppendValues({values, count}, format, bytes);
  std::vector<float> rows(count);
  ScatterRows(sequence, hidden, values, rows.data());
  AppendValues(rows, format, bytes);
}

void AppendAttentionWeights(const EncodedSequence& sequence, int64_t maps, NumberFormat format,
                            std::string& bytes) {
  if (sequence.attention_mask.empty()) {
    return AppendValues(sequence.result.attention_weights, format, bytes);
  }
  const size_t len = sequence.token_ids.size();
  const float* next = sequence.result.attention_weights.data();
  std::vector<float> row(len);
  for (int64_t map = 0; map < maps; ++map) {
    for (size_t query = 0; query < len; ++query) {
      std::fill(row.begin(), row.end(), 0.0f);
      for (size_t key = 0; key < len && !sequence.masked(query); ++key) {
        if (!sequence.masked(key)) row[key] = *next++;
      }
      AppendValues(row, format, bytes);
    }
  }
}

}  // namespace attendant
