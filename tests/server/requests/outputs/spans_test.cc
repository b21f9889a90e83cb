// SPDX-License-Identifier: Apache-2.0
#include "server/requests/outputs/spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::Pair;

EncodedSequence SequenceOf(size_t tokens) {
  EncodedSequence sequence;
  sequence.token_ids.resize(tokens);
  sequence.attention_mask.assign(tokens, 1);
  return sequence;
}

std::vector<std::pair<int64_t, int64_t>> Chunks(size_t tokens, int64_t each, int32_t first_pooled) {
  EncodeInput input;
  input.chunk_tokens = each;
  const auto spans = ChooseSpans(input, 0, SequenceOf(tokens), first_pooled);
  std::vector<std::pair<int64_t, int64_t>> found;
  for (const TokenSpan& span : *spans) found.emplace_back(span.begin, span.end);
  return found;
}

TEST(SpansTest, ChunksBeginBehindAPromptThatIsLeftOut) {
  EXPECT_THAT(Chunks(10, 4, 0), ElementsAre(Pair(0, 3), Pair(3, 6), Pair(6, 10)));
  EXPECT_THAT(Chunks(10, 4, 3), ElementsAre(Pair(3, 6), Pair(6, 10)));
  // A prompt that takes all of the sequence, after truncation, leaves nothing to begin behind.
  EXPECT_THAT(Chunks(3, 4, 3), ElementsAre(Pair(0, 3)));
}

TEST(SpansTest, TokensOfAPromptThatIsLeftOutAndMaskedOnesAreNotPooled) {
  EncodedSequence sequence = SequenceOf(6);
  EXPECT_TRUE(HasPooledToken(sequence, {0, 3}, 2));
  EXPECT_FALSE(HasPooledToken(sequence, {0, 3}, 3));
  sequence.attention_mask[2] = 0;
  EXPECT_FALSE(HasPooledToken(sequence, {0, 3}, 2));
  EXPECT_TRUE(HasPooledToken(sequence, {0, 4}, 2));
}

}  // namespace
}  // namespace attendant
