// SPDX-License-Identifier: Apache-2.0
// Requests that are rare but legal, and requests that could mean two things.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/http/doors_fixture.h"

namespace attendant {
namespace {

constexpr char kPath[] = "/v1/embeddings";
constexpr char kHello[] = R"({"model":"tiny","input":"hello"})";

class OddRequestsTest : public DoorsTest {};

TEST_F(OddRequestsTest, TheLastFieldOfANameCounts) {
  EXPECT_EQ(Post(kPath, R"({"model":"nobody","model":"tiny","input":[],"input":"hello"})").body,
            Post(kPath, kHello).body);
  EXPECT_EQ(Post(kPath, R"({"model":"tiny","model":"nobody","input":"hello"})").code, 404);
}

}  // namespace
}  // namespace attendant
