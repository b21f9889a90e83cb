// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <iterator>
#include <vector>

#include "tests/support/backends.h"

namespace attendant {

// Expects that the first or last token of each sequence is pooled to the same bits as in a run of
// which all last states are wanted: beside sequences of which all or nothing is wanted, and alone.
inline void ExpectOneTokenPooledAsIfAllWereWanted(Session& session,
                                                  const std::vector<TestSequence>& sequences) {
  const Pooling kinds[] = {Pooling::kCls, Pooling::kLast, Pooling::kNone, Pooling::kMean,
                           Pooling::kLast};
  for (size_t turn = 0; turn < std::size(kinds); ++turn) {
    std::vector<SequenceOutputs> wanted;
    for (size_t i = 0; i < sequences.size(); ++i) {
      wanted.push_back({.pooling = kinds[(turn + i) % std::size(kinds)], .normalize = i % 2 == 0});
    }
    std::vector<SequenceOutputs> all = wanted;
    for (SequenceOutputs& one : all) one.last_hidden_state = true;
    const auto expected = PoolBatch(session, sequences, all);
    EXPECT_EQ(PoolBatch(session, sequences, wanted), expected);
    for (size_t i = 0; i < sequences.size(); ++i) {
      EXPECT_EQ(PoolBatch(session, {sequences[i]}, {wanted[i]})[0], expected[i]) << i;
    }
  }
}

}  // namespace attendant
