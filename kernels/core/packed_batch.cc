// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/packed_batch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

absl::Status CheckBelow(const char* what, std::span<const int32_t> values, int64_t limit,
                        const char* limit_name) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= limit) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " ", values[i], " at token ", i, " must be from 0 to ", limit - 1,
                       " (the model's ", limit_name, " is ", limit, ")"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void PackedBatch::Clear() {
  token_ids_.clear();
  positions_.clear();
  segment_ids_.clear();
  seq_starts_.resize(1);
  keys_.clear();
}

void PackedBatch::Append(std::span<const int32_t> token_ids, std::span<const int32_t> positions,
                         std::span<const int32_t> segment_ids, int64_t keys) {
  const auto len = static_cast<int64_t>(token_ids.size());
  ATTENDANT_CHECK(len > 0 && keys >= 0 && keys <= len);
  ATTENDANT_CHECK(positions.size() == token_ids.size() && segment_ids.size() == token_ids.size());
  token_ids_.insert(token_ids_.end(), token_ids.begin(), token_ids.end());
  positions_.insert(positions_.end(), positions.begin(), positions.end());
  segment_ids_.insert(segment_ids_.end(), segment_ids.begin(), segment_ids.end());
  seq_starts_.push_back(tokens());
  keys_.push_back(keys == 0 ? len : keys);
}

int64_t PackedBatch::max_len() const {
  int64_t longest = 0;
  for (int64_t i = 0; i < batch(); ++i) longest = std::max(longest, len(i));
  return longest;
}

absl::Status ValidateSequence(const EncoderConfig& config, std::span<const int32_t> token_ids,
                              std::span<const int32_t> positions,
                              std::span<const int32_t> segment_ids) {
  if (token_ids.empty()) return absl::InvalidArgumentError("the sequence is empty");
  if (positions.size() != token_ids.size() || segment_ids.size() != token_ids.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the sequence has ", token_ids.size(), " token ids, ", positions.size(), " positions and ",
        segment_ids.size(), " segment ids: they must be equally many"));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckBelow("token id", token_ids, config.vocab, "vocab"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckBelow("position", positions, config.max_positions, "max_positions"));
  return CheckBelow("segment id", segment_ids, config.segment_types, "segment_types");
}

}  // namespace attendant
