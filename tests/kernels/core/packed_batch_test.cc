// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/packed_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr EncoderConfig kConfig{.layers = 1,
                                .heads = 2,
                                .hidden = 8,
                                .ffn = 16,
                                .vocab = 100,
                                .max_positions = 10,
                                .segment_types = 2,
                                .layer_norm_epsilon = 1e-12f};

TEST(PackedBatchTest, LaysSequencesEndToEnd) {
  PackedBatch batch;
  EXPECT_EQ(batch.batch(), 0);
  EXPECT_EQ(batch.tokens(), 0);
  batch.Append(std::vector{5, 6, 7}, std::vector{0, 2, 3}, std::vector{0, 0, 1});
  batch.Append(std::vector{8}, std::vector{0}, std::vector{0});
  EXPECT_EQ(batch.batch(), 2);
  EXPECT_EQ(batch.tokens(), 4);
  EXPECT_EQ(batch.len(0), 3);
  EXPECT_EQ(batch.len(1), 1);
  EXPECT_EQ(batch.seq_start(1), 3);
  EXPECT_EQ(batch.max_len(), 3);
  EXPECT_THAT(batch.token_ids(), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(batch.positions(), ElementsAre(0, 2, 3, 0));
  EXPECT_THAT(batch.segment_ids(), ElementsAre(0, 0, 1, 0));
}

TEST(PackedBatchTest, KeysAreAllTokensOrTheFirst) {
  PackedBatch batch;
  batch.Append(std::vector{5, 6, 7}, std::vector{0, 1, 2}, std::vector{0, 0, 0});
  batch.Append(std::vector{5, 6, 7}, std::vector{0, 1, 2}, std::vector{0, 0, 0}, 2);
  EXPECT_EQ(batch.keys(0), 3);
  EXPECT_EQ(batch.keys(1), 2);
  EXPECT_EQ(batch.len(1), 3);
  batch.Clear();
  batch.Append(std::vector{5}, std::vector{0}, std::vector{0}, 1);
  EXPECT_EQ(batch.keys(0), 1);
}

TEST(PackedBatchTest, ClearStartsAnew) {
  PackedBatch batch;
  batch.Append(std::vector{1, 2}, std::vector{0, 1}, std::vector{0, 0});
  batch.Clear();
  EXPECT_EQ(batch.batch(), 0);
  batch.Append(std::vector{9}, std::vector{4}, std::vector{1});
  EXPECT_EQ(batch.batch(), 1);
  EXPECT_THAT(batch.token_ids(), ElementsAre(9));
}

TEST(PackedBatchDeathTest, UnequalSpansAreABug) {
  PackedBatch batch;
  EXPECT_DEATH(batch.Append(std::vector{1, 2}, std::vector{0}, std::vector{0, 0}), "check failed");
  EXPECT_DEATH(batch.Append({}, {}, {}), "check failed");
}

struct BadSequence {
  std::vector<int32_t> token_ids, positions, segment_ids;
  const char* message;
};

TEST(ValidateSequenceTest, NamesTheValueItsPlaceAndTheLimit) {
  EXPECT_TRUE(
      ValidateSequence(kConfig, std::vector{0, 99}, std::vector{0, 9}, std::vector{0, 1}).ok());
  const BadSequence bad[] = {
      {{}, {}, {}, "the sequence is empty"},
      {{1, 2}, {0}, {0, 0}, "2 token ids, 1 positions and 2 segment ids"},
      {{1, 100}, {0, 1}, {0, 0}, "token id 100 at token 1 must be from 0 to 99"},
      {{-1}, {0}, {0}, "token id -1 at token 0"},
      {{1}, {10}, {0}, "position 10 at token 0 must be from 0 to 9"},
      {{1}, {0}, {2}, "segment id 2 at token 0 must be from 0 to 1"},
  };
  for (const BadSequence& sequence : bad) {
    const absl::Status status =
        ValidateSequence(kConfig, sequence.token_ids, sequence.positions, sequence.segment_ids);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(sequence.message));
  }
}

}  // namespace
}  // namespace attendant
