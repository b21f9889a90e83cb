// SPDX-License-Identifier: Apache-2.0
// What the answers of all routes and pages have in common.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/http/gzip.h"
#include "tests/server/http/doors_fixture.h"

namespace attendant {
namespace {

using testing::HasSubstr;
using testing::Not;

class HttpAnswersTest : public DoorsTest {
 protected:
  // The answer to HEAD, with all that follows its head.
  HttpAnswer Head(const std::string& path, const std::string& headers = "") {
    HttpClient client(server_.http_port());
    client.Write(absl::StrCat(
        "HEAD ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", headers, "\r\n"));
    HttpAnswer answer = client.Read(/*with_body=*/false);
    answer.body = client.ReadAll();
    return answer;
  }
};

// The value of a header. Empty: there is none.
std::string Header(const HttpAnswer& answer, const std::string& name) {
  for (const absl::string_view line : absl::StrSplit(answer.head, "\r\n")) {
    if (absl::StartsWith(line, name + ": ")) return std::string(line.substr(name.size() + 2));
  }
  return "";
}

TEST_F(HttpAnswersTest, HeadHasTheHeadOfGet) {
  for (const char* path :
       {"/v1/models", "/v1/models/tiny", "/info", "/v2", "/v2/models/tiny",
        "/v2/models/tiny/config", "/v2/models/tiny/ready", "/health", "/", "/console/app.js",
        "/openapi.json", "/healthz", "/v1/models/none", "/v1/none", "/v1/embeddings"}) {
    for (const char* accepted : {"", "Accept-Encoding: gzip\r\n"}) {
      const HttpAnswer get = Get(path, accepted), head = Head(path, accepted);
      EXPECT_EQ(head.code, get.code) << path;
      EXPECT_EQ(head.body, "") << path;
      for (const char* name : {"Content-Length", "Content-Type", "Content-Encoding", "Vary"}) {
        EXPECT_EQ(Header(head, name), Header(get, name)) << path;
      }
    }
  }
}

TEST_F(HttpAnswersTest, OtherMethodsAreToldThoseOfThePath) {
  EXPECT_EQ(Header(Post("/v1/models", "{}"), "Allow"), "GET, HEAD");
  EXPECT_EQ(Header(Head("/v1/embeddings"), "Allow"), "POST");
  EXPECT_EQ(Header(Post("/v2/models/stats", "{}"), "Allow"), "GET, HEAD")
      << "the path of statistics, and no model's";
}

TEST_F(HttpAnswersTest, PagesAreCompressed) {
  for (const char* path : {"/metrics", "/openapi.json"}) {
    const HttpAnswer plain = Get(path), packed = Get(path, "Accept-Encoding: gzip\r\n");
    EXPECT_EQ(Header(plain, "Content-Encoding"), "") << path;
    EXPECT_EQ(Header(packed, "Content-Encoding"), "gzip") << path;
    EXPECT_EQ(Header(packed, "Content-Type"), Header(plain, "Content-Type")) << path;
    for (const HttpAnswer& answer : {plain, packed}) {
      EXPECT_EQ(Header(answer, "Vary"), "Accept-Encoding") << path;
    }
    EXPECT_LT(4 * packed.body.size(), plain.body.size()) << path;
    const absl::StatusOr<std::string> text =
        Gunzip(packed.body, GunzippedBytes(packed.body).value_or(0));
    ASSERT_TRUE(text.ok()) << path;
    EXPECT_EQ(text->substr(0, 10), plain.body.substr(0, 10)) << path;
  }
  EXPECT_EQ(Header(Get("/healthz", "Accept-Encoding: gzip\r\n"), "Content-Encoding"), "")
      << "too short";
}

}  // namespace
}  // namespace attendant
