// SPDX-License-Identifier: Apache-2.0
#include "server/http/kserve/infer_message.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace attendant {
namespace {

// The level of the priority that a body with these parameters and a header of -5 asks for.
int64_t LevelOf(const std::string& parameters) {
  InferForm form;
  InferMessage message({R"({"parameters":{)" + parameters + "}}", false, 1000},
                       {.model = "m", .version = "", .json_bytes = {}, .priority = -5}, form);
  EXPECT_TRUE(message.Scan().ok());
  EXPECT_TRUE(message.Parse().ok());
  return message.request().parameters().at("priority").int64_param();
}

TEST(InferMessageTest, TheBodysPriorityGoesBeforeTheHeaders) {
  EXPECT_EQ(LevelOf(""), 106) << "levels run the other way, from 101 for 0";
  EXPECT_EQ(LevelOf(R"("priority":7)"), 7);
}

// Parses a body whose rows are pairs of texts, of which there may be `max_sequences`.
absl::Status ParsePairs(size_t pairs, int64_t max_sequences) {
  std::string data;
  for (size_t i = 0; i < pairs; ++i) data += i == 0 ? R"(["a","b"])" : R"(,["a","b"])";
  const std::string shape = "[" + std::to_string(pairs) + ",2]";
  std::string body = R"({"inputs":[{"name":"text","datatype":"BYTES","shape":)" + shape +
                     R"(,"data":[)" + data + "]}]}";
  InferForm form;
  InferMessage message(
      {std::move(body), false, 1 << 20},
      {.model = "m", .version = "", .json_bytes = {}, .max_sequences = max_sequences}, form);
  EXPECT_TRUE(message.Scan().ok());
  return message.Parse();
}

TEST(InferMessageTest, ASequenceMayBeAPairOfTexts) {
  EXPECT_TRUE(ParsePairs(2049, 4096).ok());
  EXPECT_TRUE(ParsePairs(4096, 4096).ok());
  EXPECT_EQ(ParsePairs(4097, 4096).message(), "data has more than 8192 strings");
}

}  // namespace
}  // namespace attendant
