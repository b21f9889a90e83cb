// SPDX-License-Identifier: Apache-2.0
// Folders as transformers saves them, from text to embedding: tokenizer and encoder together.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"
#include "server/text/tokenizer.h"
#include "tests/support/backends.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

void ExpectEmbeddings(const std::string& model, const std::vector<std::string>& texts) {
  const auto tokenizer = LoadTokenizer(GoldenDirectory(model));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto encoder = PrepareCheckpoint(**MakeCpuBackend({}), GoldenDirectory(model));
  const int64_t most = encoder->config().max_positions;
  std::vector<TestSequence> sequences;
  for (const std::string& text : texts) {
    const auto tokens = (*tokenizer)->Tokenize(text, {.max_tokens = most});
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    const auto len = static_cast<int32_t>(tokens->token_ids.size());
    EXPECT_EQ(tokens->truncated(), len == most);
    sequences.push_back({tokens->token_ids, {}, tokens->segment_ids});
    for (int32_t i = 0; i < len; ++i) sequences.back().positions.push_back(i);
  }
  const auto session = *encoder->NewSession({.max_batch_tokens = 256, .max_batch_sequences = 8}, 1);
  const auto outputs = RunBatch(*session, sequences);
  const auto cases = ReadGoldenCases(model);
  ASSERT_TRUE(cases.ok()) << cases.status();
  size_t compared = 0;
  for (const GoldenCase& golden : *cases) {
    if (golden.embedding.empty()) continue;
    EXPECT_EQ(golden.name, absl::StrCat("text_", compared));
    EXPECT_EQ(sequences[compared].token_ids, golden.token_ids);
    EXPECT_LE(LargestDifference(outputs[compared].pooled, golden.embedding), 2e-6f);
    ++compared;
  }
  EXPECT_EQ(compared, texts.size());
}

TEST(TextToEmbeddingTest, EqualsTransformersForEveryFamily) {
  const auto texts = ReadGoldenTexts(kTinyTexts);
  ASSERT_TRUE(texts.ok()) << texts.status();
  int models = 0;
  for (const char* model : kTinyModels) {
    const std::string folder = GoldenDirectory(model);
    if (!std::filesystem::exists(folder + "/tokenizer.json") &&
        !std::filesystem::exists(folder + "/vocab.txt")) {
      continue;
    }
    SCOPED_TRACE(model);
    ExpectEmbeddings(model, *texts);
    ++models;
  }
  EXPECT_EQ(models, 26);
}

}  // namespace
}  // namespace attendant
