// SPDX-License-Identifier: Apache-2.0
// The tokenizer against what the `tokenizers` library gave; tests/golden/tokenizer/make_corpus.py
// says how.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/text/normalizers/bert_normalizer.h"
#include "server/text/pre_tokenizers/word_reader.h"
#include "server/text/tokenizer.h"
#include "server/text/unicode/utf8.h"
#include "tests/server/text/family_files.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

using nlohmann::json;

constexpr char kCorpus[] = "tests/golden/tokenizer/corpus.jsonl";
constexpr char kCharacters[] = "tests/golden/tokenizer/characters.jsonl";
constexpr int64_t kNoLimit = int64_t{1} << 30;

std::vector<json> ReadLines(const std::string& path) {
  std::vector<json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(TokenizerGoldenTest, EveryTextHasTheLibrarysIdsAndOffsets) {
  const absl::StatusOr<std::string> directory = RealModelDirectory();
  ASSERT_TRUE(directory.ok()) << directory.status();
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(*directory);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::vector<json> lines = ReadLines(kCorpus);
  ASSERT_GE(lines.size(), 1000u) << kCorpus;

  for (const json& line : lines) {
    TokenizerOptions options{.max_tokens = line.value("max_tokens", kNoLimit)};
    const auto text = line["text"].get<std::string>();
    const absl::StatusOr<TokenizedText> tokenized = (*tokenizer)->Tokenize(text, options);
    ASSERT_TRUE(tokenized.ok()) << tokenized.status();
    ASSERT_EQ(tokenized->token_ids, line["ids"].get<std::vector<int32_t>>())
        << line["text"].dump(-1, ' ', true) << " with max_tokens " << options.max_tokens;
    ASSERT_EQ(tokenized->segment_ids, std::vector<int32_t>(tokenized->token_ids.size(), 0));
    options.offsets = OffsetUnit::kCharacters;
    const absl::StatusOr<TokenizedText> aligned = (*tokenizer)->Tokenize(text, options);
    ASSERT_TRUE(aligned.ok()) << aligned.status();
    ASSERT_EQ(aligned->token_ids, tokenized->token_ids) << line["text"].dump(-1, ' ', true);
    ASSERT_EQ(OffsetsChecksum(*aligned), line["offsets"].get<uint32_t>())
        << line["text"].dump(-1, ' ', true) << " with max_tokens " << options.max_tokens;
  }
}

// 64-bit FNV-1a.
uint64_t Hash(const std::string& bytes, uint64_t value) {
  for (const char byte : bytes) {
    value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  }
  return value;
}

std::string Words(const BertNormalizer& normalizer, const std::string& text) {
  std::string normalized;
  normalizer.Append(text, normalized.max_size(), normalized);
  std::string words;
  WordReader reader(normalized);
  for (absl::string_view word = reader.Next(); !word.empty(); word = reader.Next()) {
    if (!words.empty()) words += '\n';
    words += std::string(word);
  }
  return words + "\n\n";
}

uint64_t HashCharacters(const BertNormalizer& normalizer, char32_t first) {
  uint64_t hash = Hash("", 0xCBF29CE484222325u);
  for (char32_t c = first; c < first + 0x1000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    AppendUtf8(c, text);
    hash = Hash(Words(normalizer, "A" + text + "b"), hash);
    hash = Hash(Words(normalizer, "a\xE3\x80\xAE" + text + "\xE3\x80\xAE"), hash);
  }
  return hash;
}

// The installed ICU's Unicode version must not show.
TEST(TokenizerGoldenTest, EveryCharacterIsNormalizedAsInTheLibrary) {
  const BertNormalizer normalizer({true, true, true, true});
  const std::vector<json> blocks = ReadLines(kCharacters);
  ASSERT_EQ(blocks.size(), size_t{0x110}) << kCharacters;
  for (const json& block : blocks) {
    const auto first = block["first"].get<uint32_t>();
    EXPECT_EQ(absl::StrFormat("%016x", HashCharacters(normalizer, first)),
              block["hash"].get<std::string>())
        << absl::StrFormat("some character from U+%04X to U+%04X", first, first + 0xFFF);
  }
}

}  // namespace
}  // namespace attendant
