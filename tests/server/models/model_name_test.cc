// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_name.h"

#include <gtest/gtest.h>

#include <string>

namespace attendant {
namespace {

TEST(CheckModelNameTest, TellsWhatCanBeServed) {
  for (const std::string& name : {std::string("m"), std::string("A-b_c.9"), std::string(128, 'x'),
                                  std::string("attentive")}) {
    EXPECT_TRUE(CheckModelName(name).ok()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string(129, 'x'), std::string(".m"), std::string("a/b"),
        std::string("a b"), std::string("attention"), std::string("m.ids"),
        std::string("m.encoder"), std::string("m.scores"), std::string("m.sparse"),
        std::string("m.masks"), std::string("m.tokens"), std::string("m.multi_vectors")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckModelName(name))) << name;
  }
}

}  // namespace
}  // namespace attendant
