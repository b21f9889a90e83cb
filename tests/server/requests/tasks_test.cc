// SPDX-License-Identifier: Apache-2.0
#include "server/requests/tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/reference/reference_backend.h"
#include "server/requests/encode_validation.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

constexpr int32_t kMask = 9;
constexpr int64_t kScoresNs = 7, kMaskNs = 1000;  // of a row
constexpr int64_t kPredictions = 5;

// Makes one kind of output, and is never run.
class OneKindHead final : public Head {
 public:
  explicit OneKindHead(TaskKind kind) : kind_(kind) {}
  bool Makes(TaskKind kind) const override { return kind == kind_; }
  ResultSize MaxResult(const TaskOptions&, std::span<const int32_t> token_ids) const override {
    if (kind_ != TaskKind::kFillMask) return {.values = std::ssize(token_ids), .columns = 1};
    const auto masks = std::count(token_ids.begin(), token_ids.end(), kMask);
    return {.values = masks * kPredictions, .columns = kPredictions};
  }
  absl::StatusOr<std::unique_ptr<HeadRunner>> NewRunner(const SessionLimits&, int) const override {
    return absl::UnimplementedError("never run");
  }
  int64_t weight_bytes() const override { return 0; }

 private:
  const TaskKind kind_;
};

// Labels tokens, and fills masks.
class HeadTimeTest : public testing::Test {
 protected:
  HeadTimeTest() {
    model_.heads.heads.push_back(std::make_unique<OneKindHead>(TaskKind::kTokenScores));
    model_.heads.heads.push_back(std::make_unique<OneKindHead>(TaskKind::kFillMask));
    model_.heads.row_ns = {kScoresNs, kMaskNs};
    work_.tasks = {{.head = 0, .options = {.kind = TaskKind::kTokenScores}},
                   {.head = 1, .options = {.kind = TaskKind::kFillMask}}};
  }

  EncoderModel model_;
  EncodeWork work_;
  const std::vector<int32_t> ids_ = {kCls, kMask, kHello, kMask, kSep};  // two masks
};

TEST_F(HeadTimeTest, IsThatOfEachTokenAndOfEachMask) {
  SequenceInput sequence;
  sequence.token_ids = ids_;
  EXPECT_EQ(CountHeadNs(model_, work_, sequence), 5 * kScoresNs + 2 * kMaskNs);
  work_.tasks.pop_back();
  EXPECT_EQ(CountHeadNs(model_, work_, sequence), 5 * kScoresNs);
}

TEST_F(HeadTimeTest, IsThatOfTheTasksThatASequenceHas) {
  SequenceInput sequence;
  sequence.token_ids = ids_;
  sequence.only_task = 0;
  EXPECT_EQ(CountHeadNs(model_, work_, sequence), 5 * kScoresNs);
  sequence.only_task = 1;
  EXPECT_EQ(CountHeadNs(model_, work_, sequence), 2 * kMaskNs);
}

TEST_F(HeadTimeTest, GoesToTheBatcherWithEachSequence) {
  auto encoder =
      MakeReferenceBackend()->Prepare(kTinyConfig, RandomWeights(kTinyConfig, 1), DType::kF32);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  model_.encoder = *std::move(encoder);
  model_.max_sequence_tokens = kTinyConfig.max_positions;
  EncodeInput input;
  IdsInput ids;
  ids.token_ids = {kCls, kMask, kHello, kMask, kSep};
  input.sequences.emplace_back(ids);
  ids.token_ids = {kCls, kHello, kSep};
  input.sequences.emplace_back(ids);
  for (const HeadTask& task : work_.tasks) input.tasks.push_back(task.options);
  EncodeOutput output;
  const auto pending = ValidateEncode(model_, EncodeLimits(), std::move(input), output);
  ASSERT_TRUE(pending.ok()) << pending.status();
  const std::vector<SequenceInput>& sequences = std::get<EncodeWork>(pending->work).sequences;
  ASSERT_EQ(sequences.size(), 2u);
  EXPECT_EQ(sequences[0].head_ns, 5 * kScoresNs + 2 * kMaskNs);
  EXPECT_EQ(sequences[1].head_ns, 3 * kScoresNs);
}

// The options of `asked` behind ChooseTasks.
TaskOptions Choose(const EncoderModel& model, const Prompt* prompt, const TaskOptions& asked) {
  EncodeInput input;
  input.tasks = {asked};
  EncodeWork work;
  EncodeOutput output;
  const SequenceReading reading{.model = model, .input = input, .prompt = prompt};
  EXPECT_TRUE(ChooseTasks(reading, work, output).ok());
  return work.tasks.at(0).options;
}

TEST(ChooseTasksTest, TheModelSaysTopKOfSparseVectorsWhereARequestDoesNot) {
  EncoderModel model;
  model.sentence.max_active_dims = 6;
  for (const TaskKind kind : {TaskKind::kSparse, TaskKind::kFillMask}) {
    model.heads.heads.push_back(std::make_unique<OneKindHead>(kind));
  }
  EXPECT_EQ(Choose(model, nullptr, {.kind = TaskKind::kSparse}).top_k, 6);
  EXPECT_EQ(Choose(model, nullptr, {.kind = TaskKind::kSparse, .top_k = 9}).top_k, 9);
  EXPECT_EQ(Choose(model, nullptr, {.kind = TaskKind::kFillMask}).top_k, 0);
}

TEST(ChooseTasksTest, ThePromptSaysWhetherTextsAreDocuments) {
  EncoderModel model;
  model.heads.heads.push_back(std::make_unique<OneKindHead>(TaskKind::kMultiVector));
  const Prompt plain;
  const Prompt query{.text = "", .form = TextForm{.document = false}};
  const Prompt document{.text = "", .form = TextForm{.document = true}};
  EXPECT_FALSE(Choose(model, nullptr, {.kind = TaskKind::kMultiVector}).document);
  EXPECT_FALSE(Choose(model, &plain, {.kind = TaskKind::kMultiVector}).document);
  EXPECT_FALSE(Choose(model, &query, {.kind = TaskKind::kMultiVector}).document);
  EXPECT_TRUE(Choose(model, &document, {.kind = TaskKind::kMultiVector}).document);
}

}  // namespace
}  // namespace attendant
