// SPDX-License-Identifier: Apache-2.0
// Requests that are rare but legal, and requests that could mean two things.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/gzip.h"
#include "tests/server/http/doors_fixture.h"

namespace attendant {
namespace {

using testing::HasSubstr;

constexpr char kPath[] = "/v1/embeddings";
constexpr char kHello[] = R"({"model":"tiny","input":"hello"})";
constexpr char kGzip[] = "Content-Encoding: gzip\r\n";

class OddRequestsTest : public DoorsTest {
 protected:
  // In OpenAI's shape.
  static std::string Message(const HttpAnswer& answer) {
    return Json(answer)["error"]["message"].get<std::string>();
  }
};

TEST_F(OddRequestsTest, AGzipBodyMayHaveSeveralMembers) {
  const std::string text = kHello;
  const HttpAnswer answer = Post(kPath, Gzip(text.substr(0, 9)) + Gzip(text.substr(9)), kGzip);
  EXPECT_EQ(answer.code, 200) << answer.body;
  EXPECT_EQ(answer.body, Post(kPath, text).body);
}

TEST_F(OddRequestsTest, SeveralMembersOfGzipHaveTheLimitTogether) {
  const std::string half = Gzip(std::string(size_t{9} << 20, ' '));
  const HttpAnswer answer = Post(kPath, half + half, kGzip);
  EXPECT_EQ(answer.code, 400);
  EXPECT_THAT(Message(answer), HasSubstr("the body inflates to at least"));
}

TEST_F(OddRequestsTest, AHeaderThatComesTwiceIsRefused) {
  for (const std::string header :
       {"X-Model: tiny", "X-Request-Timeout-Ms: 60000", "X-Request-Priority: 1",
        "Connect-Timeout-Ms: 60000", "Content-Encoding: identity",
        "Inference-Header-Content-Length: 1"}) {
    const HttpAnswer answer = Post(kPath, kHello, absl::StrCat(header, "\r\n", header, "\r\n"));
    EXPECT_EQ(answer.code, 400) << header;
    EXPECT_THAT(Message(answer), HasSubstr(" comes twice")) << "in OpenAI's shape";
  }
  EXPECT_EQ(Post(kPath, kHello, "X-Other: a\r\nX-Other: b\r\n").code, 200);
}

TEST_F(OddRequestsTest, TheLastFieldOfANameCounts) {
  EXPECT_EQ(Post(kPath, R"({"model":"nobody","model":"tiny","input":[],"input":"hello"})").body,
            Post(kPath, kHello).body);
  EXPECT_EQ(Post(kPath, R"({"model":"tiny","model":"nobody","input":"hello"})").code, 404);
}

TEST_F(OddRequestsTest, AFieldThatNoDoorReadsMayHoldAnyInteger) {
  const std::string digits(30, '1');
  EXPECT_EQ(
      Post(kPath, absl::StrCat(R"({"model":"tiny","seed":)", digits, R"(,"input":"hello"})")).body,
      Post(kPath, kHello).body);
  const HttpAnswer answer =
      Post(kPath, absl::StrCat(R"({"model":"tiny","dimensions":)", digits, R"(,"input":"hello"})"));
  EXPECT_EQ(answer.code, 400);
  EXPECT_THAT(Message(answer), HasSubstr("dimensions must be an integer, not a number"));
}

TEST_F(OddRequestsTest, AByteOrderMarkBeforeTheJsonCountsForNothing) {
  EXPECT_EQ(Post(kPath, absl::StrCat("\xEF\xBB\xBF", kHello)).body, Post(kPath, kHello).body);
  EXPECT_EQ(Post(kPath, "\xEF\xBB\xBF").code, 400);
}

// The old name of gzip (RFC 9110, 8.4.1.3).
TEST_F(OddRequestsTest, XGzipIsGzip) {
  EXPECT_EQ(Post(kPath, Gzip(kHello), "Content-Encoding: X-GZip\r\n").code, 200);
}

}  // namespace
}  // namespace attendant
