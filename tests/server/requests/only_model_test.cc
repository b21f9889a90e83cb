// SPDX-License-Identifier: Apache-2.0
#include "server/requests/only_model.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>

#include "kernels/heads/head.h"

namespace attendant {
namespace {

// A model for texts with these heads on tokens.
EncoderFacts WithHeads(std::initializer_list<TaskKind> kinds) {
  EncoderFacts facts{.takes_text = true};
  for (const TaskKind kind : kinds) facts.task_columns[static_cast<size_t>(kind)] = 8;
  return facts;
}

TEST(ModelNeedTest, ModelsWithLabelsOrSpladeVectorsAreNotForEmbeddings) {
  EXPECT_TRUE(Embeds(EncoderFacts{}));
  EXPECT_FALSE(Embeds(EncoderFacts{.labels = 1}));
  EXPECT_FALSE(Embeds(WithHeads({TaskKind::kTokenScores})));
  const EncoderFacts bge_m3 = WithHeads({TaskKind::kSparse, TaskKind::kMultiVector});
  EXPECT_TRUE(Embeds(bge_m3));
  EncoderFacts splade = WithHeads({TaskKind::kSparse});
  splade.splade = true;
  EXPECT_FALSE(Embeds(splade));
  EXPECT_TRUE(EmbedsSparsely(splade));
  EXPECT_TRUE(EmbedsSparsely(bge_m3));
  EXPECT_FALSE(EmbedsSparsely(WithHeads({TaskKind::kMultiVector})));
}

TEST(ModelNeedTest, OneLabelOrVectorsOfTokensRank) {
  EXPECT_FALSE(Ranks(EncoderFacts{.takes_text = true}));
  EXPECT_TRUE(Ranks(EncoderFacts{.labels = 1}));
  EXPECT_FALSE(Ranks(EncoderFacts{.labels = 2}));
  EncoderFacts colbert = WithHeads({TaskKind::kMultiVector});
  EXPECT_TRUE(Ranks(colbert));
  colbert.takes_text = false;
  EXPECT_FALSE(Ranks(colbert));
  EXPECT_TRUE(Classifies(EncoderFacts{.labels = 1}));
  EXPECT_FALSE(Classifies(EncoderFacts{}));
}

TEST(MayBeMeantTest, AModelThatIsBeingUnloadedIsNot) {
  ModelStatus status;
  status.facts = EncoderFacts{.labels = 1};
  for (const ModelState state :
       {ModelState::kLoading, ModelState::kReady, ModelState::kIdle, ModelState::kIdleFailed,
        ModelState::kFailed, ModelState::kLost, ModelState::kDraining}) {
    status.state = state;
    EXPECT_TRUE(MayBeMeant(status, Ranks)) << static_cast<int>(state);
    EXPECT_FALSE(MayBeMeant(status, Embeds)) << static_cast<int>(state);
  }
  for (const ModelState state : {ModelState::kUnloading, ModelState::kUnloaded}) {
    status.state = state;
    EXPECT_FALSE(MayBeMeant(status, Ranks)) << static_cast<int>(state);
  }
}

TEST(MayBeMeantTest, AModelOfUnknownKindIs) {
  ModelStatus status;
  status.state = ModelState::kFailed;
  EXPECT_TRUE(MayBeMeant(status, Ranks));
}

}  // namespace
}  // namespace attendant
