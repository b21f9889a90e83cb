// SPDX-License-Identifier: Apache-2.0
// What RFC 9112 asks of a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "server/http/connection/http_message.h"
#include "server/http/connection/request_head.h"
#include "server/http/connection/request_target.h"
#include "tests/server/http/holding_port.h"
#include "tests/server/http/http_client.h"

namespace attendant {
namespace {

using testing::HasSubstr;

std::string Path(absl::string_view target) {
  const std::optional<RequestTarget> read = ReadRequestTarget("GET", target);
  return read ? read->path : "none";
}

TEST(RequestTargetTest, ThePathIsWithoutTheQuery) {
  EXPECT_EQ(Path("/"), "/");
  EXPECT_EQ(Path("/a/b?c=/d?"), "/a/b");
  EXPECT_EQ(ReadRequestTarget("GET", "/a")->authority, std::nullopt);
}

TEST(RequestTargetTest, AWholeUriHasItsServer) {
  for (const auto& [uri, authority, path] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"http://host/a?b", "host", "/a"},
           {"HTTPS://Host:8002/a", "Host:8002", "/a"},
           {"http://[::1]:8002", "[::1]:8002", "/"},
           {"http://host?a=/b", "host", "/"}}) {
    const std::optional<RequestTarget> read = ReadRequestTarget("GET", uri);
    ASSERT_TRUE(read.has_value()) << uri;
    EXPECT_EQ(read->authority, authority);
    EXPECT_EQ(read->path, path);
  }
}

TEST(RequestTargetTest, OtherFormsAreNone) {
  for (const char* target : {"", "a", "host:80", "ftp://host/a", "http:///a", "http://?a",
                             "http://a b/c", "http://user@host/a", "*"}) {
    EXPECT_EQ(Path(target), "none") << target;
  }
  EXPECT_EQ(ReadRequestTarget("OPTIONS", "*")->path, "*");
}

TEST(RequestTargetTest, UndoesTheEscapesThatMeanNothing) {
  EXPECT_EQ(Path("/%6d%6F%64els/%7e%2D%2e%5F"), "/models/~-._");
  for (const char* path : {"/a%2Fb", "/%3Fa", "/%00", "/%25%36%64", "/%", "/%6", "/%zz", "/%e4"}) {
    EXPECT_NE(Path(path), "none") << path;
  }
  EXPECT_EQ(Path("/a%2Fb"), "/a%2Fb");
  EXPECT_EQ(Path("/%2541"), "/%2541") << "undone once";
  EXPECT_EQ(Path("/%00%zz%6"), "/%00%zz%6");
}

bool HasFitHost(bool http_1_0, const std::vector<std::string>& hosts) {
  RequestHead head({.method = "GET", .target = "/", .http_1_0 = http_1_0});
  for (const std::string& host : hosts) head.Add("Host", host);
  return head.HasFitHost();
}

TEST(RequestHeadTest, OneHostIsNeeded) {
  for (const char* host : {"localhost", "a.example:8002", "[::1]:8002", "", "a_b", "%41"}) {
    EXPECT_TRUE(HasFitHost(false, {host})) << host;
  }
  for (const char* host : {"a b", "a/b", "http://a", "user@a", "a\tb", "a?b", "a#b", "\xe4"}) {
    EXPECT_FALSE(HasFitHost(false, {host})) << host;
  }
  EXPECT_FALSE(HasFitHost(false, {}));
  EXPECT_TRUE(HasFitHost(true, {})) << "HTTP/1.0 lacks it";
  for (const bool http_1_0 : {false, true}) EXPECT_FALSE(HasFitHost(http_1_0, {"a", "a"}));
}

TEST(RequestHeadTest, AHeaderThatComesTwiceIsNone) {
  RequestHead head({.method = "GET", .target = "/"});
  head.Add("X-Model", "a");
  EXPECT_EQ(head.Find("x-model"), "a");
  head.Add("x-model", "a");
  EXPECT_EQ(head.Find("x-model"), std::nullopt);
}

TEST(RequestHeadTest, HeadersThatMustNotRepeat) {
  RequestHead head({.method = "GET", .target = "/"});
  for (const char* name : {"X-A", "X-B", "x-b"}) head.Add(name, "1");
  const std::vector<absl::string_view> once = {"x-a", "x-c"}, twice = {"x-a", "x-b"};
  EXPECT_FALSE(head.RepeatedHeader(once).has_value());
  const std::optional<HttpFailure> failure = head.RepeatedHeader(twice);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->code, 400);
  EXPECT_EQ(failure->status.message(), "the header x-b comes twice");
  for (int i = 0; i < 2; ++i) head.Add("Content-Encoding", "gzip");
  EXPECT_EQ(head.RepeatedHeader({}).value_or(HttpFailure()).status.message(),
            "the header content-encoding comes twice");
}

TEST(HttpMessageTest, AnAnswerHasTheDate) {
  const absl::Time now =
      absl::FromCivil(absl::CivilSecond(1994, 11, 6, 8, 49, 37), absl::UTCTimeZone());
  EXPECT_THAT(HttpHeadOf({}, true, now), HasSubstr("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
}

class HttpRulesTest : public HoldingPortTest {
 protected:
  // The code of the answer to a head without its empty line.
  int Code(const std::string& head) {
    HttpClient client(endpoint_->port());
    client.Write(head + "\r\n\r\n");
    return client.Read().code;
  }
};

TEST_F(HttpRulesTest, ARequestWithoutAClearHostIsRefused) {
  EXPECT_EQ(Code("GET /open HTTP/1.1"), 400);
  EXPECT_EQ(Code("GET /healthz HTTP/1.1"), 400);
  EXPECT_EQ(Code("GET http://localhost/open HTTP/1.1"), 400);
  EXPECT_EQ(Code("GET /open HTTP/1.1\r\nHost: localhost\r\nhost: localhost"), 400);
  EXPECT_EQ(Code("GET /open HTTP/1.1\r\nHost: local/host"), 400);
  EXPECT_EQ(Code("GET /open HTTP/1.0"), 200);
}

TEST_F(HttpRulesTest, AnsweredForAWholeUri) {
  EXPECT_EQ(Code("GET http://localhost/open HTTP/1.1\r\nHost: localhost"), 200);
  EXPECT_EQ(Code("GET http://localhost/open?a HTTP/1.1\r\nHost: evil.example"), 200)
      << "the URI's server counts";
  EXPECT_EQ(Code("GET http://evil.example/open HTTP/1.1\r\nHost: localhost"), 403);
  EXPECT_EQ(Code("GET open HTTP/1.1\r\nHost: localhost"), 400);
  EXPECT_EQ(Code("CONNECT localhost:80 HTTP/1.1\r\nHost: localhost"), 400);
}

TEST_F(HttpRulesTest, AnsweredForAnEscapedPath) {
  EXPECT_EQ(Code("GET /%6fpen HTTP/1.1\r\nHost: localhost"), 200);
  EXPECT_EQ(Code("GET /he%61lthz HTTP/1.1\r\nHost: localhost"), 200);
  EXPECT_EQ(Code("GET %2Fopen HTTP/1.1\r\nHost: localhost"), 400);
}

TEST_F(HttpRulesTest, OptionsOfTheServer) {
  HttpClient client(endpoint_->port());
  client.Write("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const HttpAnswer answer = client.Read();
  EXPECT_EQ(answer.code, 200);
  EXPECT_THAT(answer.head, HasSubstr("\r\nAllow: GET, HEAD, POST, OPTIONS\r\n"));
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(Code("GET * HTTP/1.1\r\nHost: localhost"), 400);
}

TEST_F(HttpRulesTest, AHeadThatOthersCouldReadOtherwiseIsRefused) {
  const std::string post = "POST /hold HTTP/1.1\r\nHost: localhost\r\n";
  for (const char* headers :
       {"Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length: 2\r\nContent-Length: 3",
        "Content-Length: +2", "Content-Length: 0x2", "Content-Length: 2 2",
        "Content-Length: 99999999999999999999", "Content-Length : 2", "Content-Length",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "A: b\nContent-Length: 2",
        "A: b\rContent-Length: 2", ": b"}) {
    EXPECT_EQ(Code(post + headers), 400) << headers;
  }
  EXPECT_EQ(Code("GET /open HTTP/1.1\nHost: localhost\n"), 400) << "a line ends with CR LF";
  EXPECT_EQ(Code("GET /open HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c"), 200)
      << "a folded line is one";
  EXPECT_EQ(Code("GET /open HTTP/1.1\r\nHost: localhost\r\n .evil.example"), 400);
}

TEST_F(HttpRulesTest, ChunksThatOthersCouldReadOtherwiseAreRefused) {
  for (const char* chunks : {"zz\r\nab\r\n", "0x2\r\nab\r\n", "-2\r\nab\r\n", " 2\r\nab\r\n",
                             "2 \r\nab\r\n", "2\nab\r\n", "2\r\nabc\r\n", "2\r\nab\n0\r\n",
                             "\r\nab\r\n", "10000000000000002\r\nab\r\n"}) {
    HttpClient client(endpoint_->port());
    client.Write(absl::StrCat("POST ", kPath,
                              " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
                              chunks, "0\r\n\r\n"));
    EXPECT_EQ(client.Read().code, 400) << chunks;
    EXPECT_EQ(client.ReadAll(), "") << "the rest is no request: " << chunks;
  }
}

}  // namespace
}  // namespace attendant
