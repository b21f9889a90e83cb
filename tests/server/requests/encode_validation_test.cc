// SPDX-License-Identifier: Apache-2.0
#include "server/requests/encode_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/core/packed_batch.h"
#include "kernels/io/json_folder.h"
#include "kernels/reference/reference_backend.h"
#include "server/requests/outputs/sequence_strings.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kQuery[] = "query";
constexpr int64_t kFilled = 8;

// Validates requests to a model that is never run.
class EncodeValidationTest : public testing::Test {
 protected:
  explicit EncodeValidationTest(const EncoderConfig& config = kTinyConfig) {
    auto encoder = MakeReferenceBackend()->Prepare(config, RandomWeights(config, 1), DType::kF32);
    EXPECT_TRUE(encoder.ok()) << encoder.status();
    model_.encoder = *std::move(encoder);
    WriteFile(directory_ / "tokenizer.json", TinyTokenizer(0));
    auto tokenizer = LoadTokenizer(JsonFolder(directory_.path()));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    model_.tokenizer = *std::move(tokenizer);
    model_.max_sequence_tokens = model_.sentence.max_text_tokens = config.max_positions;
  }

  TempDirectory directory_;
  EncoderModel model_;
};

EncoderConfig DecoderConfig() {
  EncoderConfig config = kTinyConfig;
  config.causal = config.unattended_tokens = true;
  return config;
}

// A decoder with a classifier that ignores kSep at the end, and queries that end in tokens that
// none attends to.
class FilledQueryTest : public EncodeValidationTest {
 protected:
  FilledQueryTest() : EncodeValidationTest(DecoderConfig()) {
    model_.classifier = SequenceClassifier{.pooling = Pooling::kLast, .padding_id = kSep};
    model_.classifier->out.outputs = 1;
    const TextForm form{.filler = kSep, .filled_tokens = kFilled, .attends_to_filler = false};
    model_.prompts.by_name[kQuery] = {.text = "", .form = form};
  }

  // The sequence that goes to the batcher for a query.
  SequenceInput Validate(const std::string& text, bool scores) {
    EncodeInput input;
    input.sequences.emplace_back(text);
    input.prompt_name = kQuery;
    input.scores = scores;
    input.last_hidden_state = !scores;
    EncodeOutput output;
    absl::StatusOr<WorkRequest> request =
        ValidateEncode(model_, EncodeLimits(), std::move(input), output);
    EXPECT_TRUE(request.ok()) << request.status();
    return std::move(request->encode().sequences.at(0));
  }
};

TEST_F(FilledQueryTest, TokensAttendToTheTextAlone) {
  const SequenceInput sequence = Validate("hello", /*scores=*/false);
  EXPECT_EQ(sequence.len(), kFilled);
  EXPECT_EQ(sequence.keys, 3) << "[CLS] hello [SEP]";
}

TEST_F(FilledQueryTest, TokensAttendToNoneThatIsMasked) {
  const SequenceInput sequence = Validate("hello [SEP] [SEP]", /*scores=*/true);
  ASSERT_EQ(sequence.token_ids, (std::vector<int32_t>{kCls, kHello}));
  ASSERT_EQ(sequence.keys, 2);
  PackedBatch batch;
  batch.Append(sequence.token_ids, sequence.positions, sequence.segment_ids, sequence.keys);
  EXPECT_EQ(batch.keys(0), 2);
}

// An answer without memory for its strings has none.
TEST_F(EncodeValidationTest, TokenStringsAreCountedBeforeTheyAreMade) {
  EncodeLimits limits;
  const auto validate = [&](bool token_strings, EncodeOutput& output) {
    EncodeInput input;
    input.sequences.emplace_back("hello world");
    input.pooled = true;
    input.token_strings = token_strings;
    return ValidateEncode(model_, limits, std::move(input), output).status();
  };
  EncodeOutput without, with;
  ASSERT_TRUE(validate(false, without).ok());
  ASSERT_TRUE(validate(true, with).ok());
  EXPECT_EQ(with.response_bytes - without.response_bytes, 4 * (40 + 5));
  EXPECT_THAT(with.sequences.at(0).token_strings, IsEmpty());
  FillStrings(model_, without);
  EXPECT_THAT(without.sequences.at(0).token_strings, IsEmpty()) << "not asked for";
  FillStrings(model_, with);
  EXPECT_THAT(with.sequences.at(0).token_strings, ElementsAre("[CLS]", "hello", "world", "[SEP]"));
  limits.max_response_bytes = with.response_bytes;
  EncodeOutput largest, refused;
  EXPECT_TRUE(validate(true, largest).ok());
  --limits.max_response_bytes;
  EXPECT_TRUE(absl::IsInvalidArgument(validate(true, refused)));
}

}  // namespace
}  // namespace attendant
