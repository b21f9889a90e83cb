// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;

absl::StatusOr<Prompts> Read(const std::string& config) {
  const TempDirectory directory;
  if (!config.empty()) WriteFile(directory / "config_sentence_transformers.json", config);
  return ReadPrompts(directory.path());
}

TEST(PromptsTest, AFolderWithoutTheFileHasNone) {
  const auto prompts = Read("");
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  EXPECT_TRUE(prompts->by_name.empty());
  EXPECT_EQ(*prompts->Find(std::nullopt), nullptr);
  EXPECT_THAT(std::string(prompts->Find("query").status().message()),
              HasSubstr("prompt_name is 'query', the model has no prompts"));
}

TEST(PromptsTest, FindsByNameAndByDefault) {
  const auto prompts = Read(R"({"prompts": {"query": "query: ", "document": "", "none": null},
                                "default_prompt_name": "query", "similarity_fn_name": "cosine"})");
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  EXPECT_EQ((*prompts->Find("query"))->text, "query: ");
  EXPECT_EQ((*prompts->Find(std::nullopt))->text, "query: ");
  EXPECT_EQ(*prompts->Find("document"), nullptr);
  EXPECT_EQ(*prompts->Find("none"), nullptr);
  EXPECT_EQ(*prompts->Find(""), nullptr);
  EXPECT_THAT(std::string(prompts->Find("x\n").status().message()),
              HasSubstr("is 'x\\n', the model has the prompts 'document', 'none', 'query'"));
}

TEST(PromptsTest, CountsTokensAsSentenceTransformersDoes) {
  const TempDirectory directory;
  WriteTinyModel(directory.path());
  const auto tokenizer = LoadTokenizer(directory.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  auto prompts =
      Read(R"({"prompts": {"two": "hello world", "none": "", "long": "hello hello hello"}})");
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  ASSERT_TRUE(CountTokens(**tokenizer, 4, *prompts).ok());
  EXPECT_EQ((*prompts->Find("two"))->tokens, 3);   // [CLS] hello world
  EXPECT_EQ(prompts->by_name["none"].tokens, 1);   // [CLS]
  EXPECT_EQ((*prompts->Find("long"))->tokens, 3);  // cut
  EXPECT_THAT(std::string(CountTokens(**tokenizer, 1, *prompts).message()),
              HasSubstr("prompt 'long': max_tokens is 1"));
}

TEST(PromptsTest, AnAdapterHasItsInstructionByDefault) {
  const TempDirectory directory;
  WriteFile(directory / "config.json",
            R"({"task_instructions": {"a.query": "query: ", "b": "b: ", "empty": ""}})");
  auto prompts = ReadPrompts(directory.path(), "a.query");
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  EXPECT_EQ(prompts->default_name, "a.query");
  EXPECT_EQ((*prompts->Find(std::nullopt))->text, "query: ");
  EXPECT_EQ(*ReadPrompts(directory.path(), "empty")->Find(std::nullopt), nullptr);
  WriteFile(directory / "config_sentence_transformers.json",
            R"({"prompts": {"a.query": "saved: ", "x": "x: "}, "default_prompt_name": "x"})");
  prompts = ReadPrompts(directory.path(), "a.query");
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  EXPECT_EQ((*prompts->Find(std::nullopt))->text, "saved: ");
  EXPECT_EQ((*ReadPrompts(directory.path(), "b")->Find(std::nullopt))->text, "b: ");
  EXPECT_EQ(ReadPrompts(directory.path())->default_name, "x");
  WriteFile(directory / "config.json", R"({"task_instructions": {"b": 1}})");
  EXPECT_THAT(std::string(ReadPrompts(directory.path(), "b").status().message()), HasSubstr("`b`"));
  WriteFile(directory / "config.json", "{}");
  EXPECT_EQ(ReadPrompts(directory.path(), "b")->default_name, "x");
}

TEST(PromptsTest, SaysWhatIsWrong) {
  const std::string long_prompt =
      absl::StrCat(R"({"prompts": {"a": ")", std::string(20000, 'x'), "\"}}");
  const std::pair<std::string, const char*> cases[] = {
      {"[]", "config_sentence_transformers.json"},
      {R"({"prompts": []})", "prompts"},
      {R"({"prompts": {"a": 1}})", "`a`"},
      {R"({"prompts": {"a": "b"}, "default_prompt_name": "c"})", "'c', which is none of `prompts`"},
      {R"({"default_prompt_name": 1})", "default_prompt_name"},
      {long_prompt, "`a` has 20000 bytes, the limit is 16384"},
  };
  for (const auto& [config, message] : cases) {
    const auto prompts = Read(config);
    EXPECT_EQ(prompts.status().code(), absl::StatusCode::kInvalidArgument) << config;
    EXPECT_THAT(std::string(prompts.status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace attendant
