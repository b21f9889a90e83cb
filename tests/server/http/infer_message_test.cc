// SPDX-License-Identifier: Apache-2.0
#include "server/http/kserve/infer_message.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace attendant
