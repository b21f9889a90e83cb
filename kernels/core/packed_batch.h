// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/core/encoder_config.h"

namespace attendant {

// Sequences of any lengths laid end to end, no padding:
//
//   token_ids    [tokens]     sequence 0 | sequence 1 | ...
//   positions    [tokens]     each token's place in its sequence: looked up, turned by, or compared
//   segment_ids  [tokens]
//   seq_starts   [batch + 1]  sequence i is rows seq_starts[i] .. seq_starts[i + 1]
//
//   keys         [batch]      tokens attend to the first keys[i] of sequence i
//
// A masked token is left out and the others keep their positions: attention ignores it, exactly as
// if its score were -inf, and it costs nothing. Tokens behind the keys are computed, but no token
// attends to them. Reused between batches; memory grows to the largest one. Thread-compatible.
class PackedBatch {
 public:
  void Clear();

  // Adds one sequence; `keys` 0: all its tokens. REQUIRES: the three spans are equally long and not
  // empty; fewer keys than tokens only for encoders with unattended_tokens.
  void Append(std::span<const int32_t> token_ids, std::span<const int32_t> positions,
              std::span<const int32_t> segment_ids, int64_t keys = 0);

  int64_t tokens() const { return static_cast<int64_t>(token_ids_.size()); }
  int64_t batch() const { return static_cast<int64_t>(seq_starts_.size()) - 1; }
  int64_t len(int64_t index) const { return seq_start(index + 1) - seq_start(index); }
  int64_t seq_start(int64_t index) const { return seq_starts_[static_cast<size_t>(index)]; }
  int64_t keys(int64_t index) const { return keys_[static_cast<size_t>(index)]; }
  int64_t max_len() const;

  std::span<const int32_t> token_ids() const { return token_ids_; }
  std::span<const int32_t> positions() const { return positions_; }
  std::span<const int32_t> segment_ids() const { return segment_ids_; }
  std::span<const int64_t> seq_starts() const { return seq_starts_; }
  std::span<const int64_t> keys() const { return keys_; }

 private:
  std::vector<int32_t> token_ids_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> segment_ids_;
  std::vector<int64_t> seq_starts_{0};
  std::vector<int64_t> keys_;
};

// OK when every id, position and segment id is inside the model's tables; else INVALID_ARGUMENT
// that names the first offending value, its place in the sequence and the limit.
absl::Status ValidateSequence(const EncoderConfig& config, std::span<const int32_t> token_ids,
                              std::span<const int32_t> positions,
                              std::span<const int32_t> segment_ids);

}  // namespace attendant
