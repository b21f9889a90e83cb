// SPDX-License-Identifier: Apache-2.0
// From ids back to text, against what the `tokenizers` library gave;
// tests/golden/tokenizer/make_decoded.py says how.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/text/tokenizer.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kFolder[] = "tests/golden/tokenizer/families/";

json ReadFile(const std::string& name) {
  std::ifstream file(kFolder + name);
  return json::parse(file);
}

std::unique_ptr<Tokenizer> LoadWith(const std::string& name, const json& decoder) {
  json contents = ReadFile(name + ".json");
  contents["decoder"] = decoder;
  const TempDirectory directory;
  WriteFile(directory / "tokenizer.json", contents.dump());
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(directory.path());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

TEST(DecodersTest, EveryListOfIdsHasTheLibrarysText) {
  const json entries = ReadFile("decoded.json");
  ASSERT_GE(entries.size(), 16u);
  for (const json& entry : entries) {
    const std::string name = entry["tokenizer"].get<std::string>();
    const auto tokenizer = LoadWith(name, entry["decoder"]);
    ASSERT_NE(tokenizer, nullptr) << name;
    int wrong = 0;
    for (const json& c : entry["cases"]) {
      if (wrong == 3) break;
      const auto ids = c[0].get<std::vector<int32_t>>();
      const absl::StatusOr<std::string> text = tokenizer->Decode(ids, c[1].get<bool>());
      ASSERT_TRUE(text.ok()) << text.status();
      wrong += *text != c[2].get<std::string>();
      EXPECT_EQ(*text, c[2].get<std::string>())
          << name << " " << entry["decoder"].dump() << ": " << c[0].dump();
    }
  }
}

TEST(DecodersTest, AnUnknownDecoderKeepsATokenizerFromDecodingOnly) {
  const auto tokenizer = LoadWith("roberta", {{"type", "CTC"}});
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_TRUE(tokenizer->Tokenize("hello", {.max_tokens = 64}).ok());
  const std::vector<int32_t> ids = {1, 2};
  const absl::StatusOr<std::string> text = tokenizer->Decode(ids, false);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(text.status().message()), HasSubstr("'CTC'"));
}

TEST(DecodersTest, AMalformedDecoderIsNamed) {
  const auto tokenizer = LoadWith("roberta", {{"type", "Metaspace"}, {"replacement", "ab"}});
  ASSERT_NE(tokenizer, nullptr);
  const std::vector<int32_t> ids = {1};
  EXPECT_THAT(std::string(tokenizer->Decode(ids, false).status().message()),
              HasSubstr("decoder.replacement"));
}

}  // namespace
}  // namespace attendant
