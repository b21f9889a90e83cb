// SPDX-License-Identifier: Apache-2.0
// Folders of sentence-transformers, from text to embedding: pooling, modules and prompts together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/core/pooling.h"
#include "kernels/reference/reference_backend.h"
#include "server/models/sentence/model_folder.h"
#include "server/models/sentence/prompts.h"
#include "server/models/sentence_settings.h"
#include "server/text/tokenizer.h"
#include "tests/support/parity.h"

namespace attendant {
namespace {

using nlohmann::json;

constexpr double kTolerance = 2e-5;  // relative to the embedding's length

class SentenceFolder {
 public:
  explicit SentenceFolder(const std::string& name) : directory_("tests/golden/sentence/" + name) {
    Checkpoint checkpoint = *LoadCheckpoint(directory_);
    const EncoderConfig config = checkpoint.config;
    encoder_ = *MakeReferenceBackend()->Prepare(config, std::move(checkpoint.weights), DType::kF32);
    settings_ =
        *ReadSentenceSettings(*FindModelFolder(directory_), config.hidden, config.max_positions);
    tokenizer_ = *LoadTokenizer(directory_);
    prompts_ = *ReadPrompts(directory_);
    EXPECT_TRUE(CountTokens(*tokenizer_, settings_.max_text_tokens, prompts_).ok());
  }

  json Expected() const { return json::parse(std::ifstream(directory_ + "/expected.json")); }

  std::vector<float> Embed(const std::string& text, const std::optional<std::string>& name) const {
    const Prompt* prompt = *prompts_.Find(name);
    TokenizerOptions options{.max_tokens = settings_.max_text_tokens};
    if (prompt != nullptr) options.prompt = prompt->text;
    const TokenizedText tokens = *tokenizer_->Tokenize(text, options);
    const bool skips = prompt != nullptr && !settings_.include_prompt;
    std::vector<float> pooled = Pool(tokens, skips ? static_cast<int32_t>(prompt->tokens) : 0);
    std::vector<float> embedding = settings_.head.Compute(std::move(pooled));
    if (settings_.normalize) NormalizeL2(embedding);
    return embedding;
  }

 private:
  std::vector<float> Pool(const TokenizedText& tokens, int32_t first_position) const {
    const auto len = static_cast<int64_t>(tokens.token_ids.size());
    std::vector<int32_t> positions(tokens.token_ids.size());
    std::iota(positions.begin(), positions.end(), 0);
    PackedBatch batch;
    batch.Append(tokens.token_ids, positions, tokens.segment_ids);
    const auto session =
        *encoder_->NewSession({.max_batch_tokens = len, .max_batch_sequences = 1}, 1);
    const SequenceOutputs wanted{.last_hidden_state = true};
    Outputs outputs;
    EXPECT_TRUE(session->Run(batch, {.sequences = {&wanted, 1}}, outputs).ok());
    const int64_t hidden = encoder_->config().hidden;
    std::vector<float> pooled(settings_.poolings.size() * static_cast<size_t>(hidden));
    PoolTokens(outputs.last_hidden_state, positions, settings_.poolings, first_position,
               pooled.data());
    return pooled;
  }

  const std::string directory_;
  std::unique_ptr<PreparedEncoder> encoder_;
  SentenceSettings settings_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Prompts prompts_;
};

double Length(const std::vector<float>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference(a.size());
  std::transform(a.begin(), a.end(), b.begin(), difference.begin(), std::minus<>());
  return Length(difference);
}

class SentenceFoldersTest : public testing::TestWithParam<const char*> {};

TEST_P(SentenceFoldersTest, EmbeddingsAreThoseOfSentenceTransformers) {
  const SentenceFolder folder(GetParam());
  int compared = 0;
  for (const json& one : folder.Expected()) {
    std::optional<std::string> prompt;
    if (one["prompt_name"].is_string()) prompt = one["prompt_name"].get<std::string>();
    for (size_t i = 0; i < one["texts"].size(); ++i, ++compared) {
      const auto wanted = one["embeddings"][i].get<std::vector<float>>();
      const std::vector<float> found = folder.Embed(one["texts"][i].get<std::string>(), prompt);
      ASSERT_EQ(found.size(), wanted.size());
      const double distance = Distance(found, wanted) / Length(wanted);
      EXPECT_LE(distance, kTolerance) << one["prompt_name"] << " " << one["texts"][i];
      RecordParity({GetParam(), "embedding of a sentence-transformers folder", "f32", "reference",
                    kRelative, distance, kTolerance});
    }
  }
  EXPECT_GE(compared, 6);
}

INSTANTIATE_TEST_SUITE_P(Folders, SentenceFoldersTest,
                         testing::Values("every_pooling", "many_modules", "old_flags", "prompts",
                                         "prompt_left_out"));

}  // namespace
}  // namespace attendant
