// SPDX-License-Identifier: Apache-2.0
// The parts of the HTTP port that know no socket.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "server/http/connection/body_buffer.h"
#include "server/http/connection/foreign_page.h"
#include "server/http/connection/http_message.h"
#include "server/http/gzip.h"
#include "server/http/http_routes.h"
#include "server/http/port/peer_name.h"
#include "server/requests/memory/memory_budgets.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

HttpRoute Route(const std::string& method, const std::string& path) {
  return MakeHttpRoute(
      method, path, MethodGroup::kInfer, [](const HttpFailure&) { return HttpResponse(); },
      [](std::unique_ptr<HttpExchange>) {}, {});
}

class HttpRoutesTest : public testing::Test {
 protected:
  const HttpRoutes routes_{{Route("GET", "/a"), Route("POST", "/a"), Route("GET", "/m/{name}"),
                            Route("GET", "/m/fixed"), Route("POST", "/m/{name}/v/{version}/run")}};

  std::string Name(absl::string_view method, absl::string_view path) {
    const HttpRoutes::Match match = routes_.Find(method, path);
    return match.route == nullptr ? "" : match.route->call.name;
  }
};

TEST_F(HttpRoutesTest, FindsByMethodAndPath) {
  EXPECT_EQ(Name("GET", "/a"), "GET /a");
  EXPECT_EQ(Name("POST", "/a"), "POST /a");
  EXPECT_EQ(Name("GET", "/m/fixed"), "GET /m/fixed") << "a path without words goes first";
  EXPECT_EQ(Name("GET", "/m/other"), "GET /m/{name}");
  EXPECT_EQ(Name("POST", "/m/x/v/2/run"), "POST /m/{name}/v/{version}/run");
  EXPECT_THAT(routes_.Find("POST", "/m/x/v/2/run").parameters, ElementsAre("x", "2"));
  for (const char* path : {"", "/", "/b", "/a/", "/m", "/m/", "/m/x/", "/m/x/v//run", "/m/x/v/2"}) {
    EXPECT_EQ(Name("GET", path), "") << path;
    EXPECT_EQ(routes_.Find("GET", path).allow, "") << path;
  }
}

TEST(SingleHeadersTest, AreThoseOfAllRoutes) {
  std::vector<HttpRoute> made = {Route("GET", "/a"), Route("POST", "/b"), Route("POST", "/c")};
  made[1].single_headers = {"x-b", "x-all"};
  made[2].single_headers = {"x-all", "x-c"};
  const HttpRoutes routes(std::move(made));
  for (const auto& [method, path] :
       {std::pair("GET", "/a"), std::pair("POST", "/b"), std::pair("POST", "/c")}) {
    const HttpRoutes::Match match = routes.Find(method, path);
    ASSERT_NE(match.route, nullptr) << path;
    EXPECT_THAT(match.single_headers, ElementsAre("x-all", "x-b", "x-c")) << path;
  }
}

TEST_F(HttpRoutesTest, HeadIsAnsweredByTheRouteOfGet) {
  EXPECT_EQ(Name("HEAD", "/a"), "GET /a");
  EXPECT_EQ(Name("HEAD", "/m/other"), "GET /m/{name}");
  EXPECT_EQ(Name("HEAD", "/m/x/v/2/run"), "");
}

TEST_F(HttpRoutesTest, SaysWhatMethodsAPathHas) {
  EXPECT_EQ(routes_.Find("PUT", "/a").allow, "GET, HEAD, POST");
  EXPECT_EQ(routes_.Find("PUT", "/m/x").allow, "GET, HEAD");
  EXPECT_EQ(routes_.Find("GET", "/m/x/v/2/run").allow, "POST");
}

TEST(ForeignPageTest, AnotherNameThanThisMachinesIsForeign) {
  for (const char* host : {"localhost", "LocalHost:8002", "127.0.0.1", "127.0.0.1:8002", "[::1]",
                           "[::1]:8002", "10.0.0.7:1"}) {
    EXPECT_FALSE(IsFromForeignPage(host, std::nullopt)) << host;
  }
  for (const char* host : {"evil.example", "evil.example:8002", "localhost.evil.example", "",
                           "127.0.0.1.evil.example", "1.2.3", "[evil]", "::1", ":8002"}) {
    EXPECT_TRUE(IsFromForeignPage(host, std::nullopt)) << host;
  }
  EXPECT_FALSE(IsFromForeignPage(std::nullopt, std::nullopt)) << "HTTP/1.0 needs none";
}

TEST(ForeignPageTest, AnOriginMustBeTheSameHost) {
  EXPECT_FALSE(IsFromForeignPage("localhost:8002", "http://localhost:8002"));
  EXPECT_FALSE(IsFromForeignPage("LOCALHOST:8002", "https://localhost"));
  EXPECT_FALSE(IsFromForeignPage("[::1]:8002", "http://[::1]:3000"));
  for (const char* origin : {"null", "", "http://evil.example", "http://127.0.0.1:8002",
                             "http://localhost.evil.example", "localhost"}) {
    EXPECT_TRUE(IsFromForeignPage("localhost:8002", origin)) << origin;
  }
  EXPECT_TRUE(IsFromForeignPage(std::nullopt, "http://localhost"));
}

TEST(GzipTest, GoesThereAndBack) {
  for (const std::string& text : {std::string(), std::string("a"), std::string(100'000, 'x')}) {
    const std::string member = Gzip(text);
    const absl::StatusOr<int64_t> bytes = GunzippedBytes(member);
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(*bytes, static_cast<int64_t>(text.size()));
    const absl::StatusOr<std::string> back = Gunzip(member, *bytes);
    ASSERT_TRUE(back.ok()) << text.size();
    EXPECT_EQ(*back, text);
  }
}

TEST(GzipTest, TakesNoMoreThanItsEndSays) {
  const std::string member = Gzip(std::string(100'000, 'x'));
  EXPECT_FALSE(Gunzip(member, 99'999).ok());
  EXPECT_FALSE(Gunzip(member, 100'001).ok());
  EXPECT_FALSE(Gunzip(member + member, 100'000).ok()) << "a second member";
  EXPECT_FALSE(Gunzip(member + "x", 100'000).ok());
}

TEST(GzipTest, HasSeveralMembers) {
  const std::string a = Gzip("one"), none = Gzip(""), long_text(100'000, 'x'), b = Gzip(long_text);
  for (const auto& [gzip, text] : {std::pair{a + b, "one" + long_text},
                                   {b + none, long_text},
                                   {none + none + a + none, std::string("one")},
                                   {none + none, std::string()}}) {
    const absl::StatusOr<int64_t> bytes = GunzippedBytes(gzip);
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(*bytes, static_cast<int64_t>(text.size()));
    const absl::StatusOr<std::string> back = Gunzip(gzip, *bytes);
    ASSERT_TRUE(back.ok()) << text.size();
    EXPECT_EQ(*back, text);
    EXPECT_FALSE(Gunzip(gzip, *bytes + 1).ok());
    EXPECT_FALSE(*bytes > 0 && Gunzip(gzip, *bytes - 1).ok());
  }
  EXPECT_FALSE(Gunzip(a + Gzip("x"), 3).ok()) << "no room for the second member";
  EXPECT_FALSE(GunzippedBytes(a + b + "x").ok());
  EXPECT_FALSE(GunzippedBytes(a + b.substr(0, b.size() - 1)).ok());
  EXPECT_FALSE(GunzippedBytes(a + a.substr(0, 9) + b).ok());
}

TEST(GzipTest, CountsSeveralMembersUpToALimit) {
  const std::string member = Gzip(std::string(1 << 20, 'x'));
  std::string bomb;
  for (int i = 0; i < 64; ++i) bomb += member;
  EXPECT_EQ(GunzippedBytes(bomb).value_or(0), int64_t{64} << 20);
  const int64_t counted = GunzippedBytes(bomb, 3 << 20).value_or(0);
  EXPECT_GT(counted, 3 << 20);
  EXPECT_LT(counted, 4 << 20);
  EXPECT_EQ(GunzippedBytes(bomb, int64_t{64} << 20).value_or(0), int64_t{64} << 20);
}

// A body may have the bytes that begin a member by chance.
TEST(GzipTest, TheStartOfAMemberMayStandInsideOne) {
  const std::string text("stored \x1f\x8b\x08 bytes");
  const std::string head("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01", 11);
  const auto size = static_cast<char>(text.size());
  std::string gzip = head + size + '\0' + static_cast<char>(~size) + '\xff' + text;
  const std::string packed = Gzip(text);
  gzip += packed.substr(packed.size() - 8);  // the checksum and the size, as any member has them
  const int64_t bytes = GunzippedBytes(gzip).value_or(0);
  EXPECT_EQ(bytes, static_cast<int64_t>(text.size()));
  EXPECT_EQ(Gunzip(gzip, bytes).value_or(""), text);
}

TEST(GzipTest, RefusesWhatIsDamaged) {
  const std::string text = "some text that is long enough to be compressed";
  const std::string member = Gzip(text);
  for (size_t cut = 0; cut < member.size(); ++cut) {
    const std::string part = member.substr(0, cut);
    EXPECT_FALSE(Gunzip(part, static_cast<int64_t>(text.size())).ok()) << cut;
    const absl::StatusOr<int64_t> bytes = GunzippedBytes(part);
    if (!bytes.ok() || *bytes > 1'000'000) continue;
    EXPECT_FALSE(Gunzip(part, *bytes).ok()) << cut;
  }
  EXPECT_FALSE(GunzippedBytes("not gzip, but long enough").ok());
}

TEST(GzipTest, RefusesASizeThatSoFewBytesCannotHave) {
  std::string member = Gzip(std::string(1 << 20, 'x'));
  EXPECT_TRUE(GunzippedBytes(member).ok());
  member[member.size() - 1] = '\1';  // 17 MiB
  EXPECT_FALSE(GunzippedBytes(member).ok());
}

TEST(PeerNameTest, IsAsGrpcNamesIt) {
  sockaddr_storage peer{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(peer);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(40312);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(PeerName(peer), "ipv4:127.0.0.1:40312");
  auto& v6 = reinterpret_cast<sockaddr_in6&>(peer);
  v6.sin6_family = AF_INET6;
  ASSERT_EQ(inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr), 1);
  EXPECT_EQ(PeerName(peer), "ipv6:[2001:db8::1]:40312");
  ASSERT_EQ(inet_pton(AF_INET6, "::ffff:10.0.0.1", &v6.sin6_addr), 1);
  EXPECT_EQ(PeerName(peer), "ipv4:10.0.0.1:40312");
}

constexpr int64_t kMost = 1 << 20;  // bytes of a body

TEST(BodyBufferTest, TakesNoMoreThanTwiceOfWhatCame) {
  MemoryBudgets budgets(
      {.max_pending_request_bytes = 100'000, .connection_request_bytes = 100'000});
  const std::shared_ptr<ConnectionBudgets> mine = budgets.ForConnection("me");
  BodyBuffer body;
  ASSERT_TRUE(body.MakeRoom(*mine, 90'000, kMost).ok());
  EXPECT_EQ(mine->request_bytes(), 16384) << "an announced length takes nothing";
  while (body.received() < 40'000) {
    ASSERT_TRUE(body.MakeRoom(*mine, 90'000, kMost).ok());
    std::memset(body.end(), 'x', body.room());
    body.Received(body.room());
    EXPECT_EQ(mine->request_bytes(), static_cast<int64_t>(body.received()));
  }
  EXPECT_TRUE(body.MakeRoom(*mine, 90'000, kMost).ok()) << "up to the length, not twice as much";
  EXPECT_EQ(mine->request_bytes(), 90'000);
  {
    const BodyBuffer::Body taken = body.Take();
    EXPECT_EQ(taken.text, std::string(65536, 'x'));
    EXPECT_EQ(mine->request_bytes(), 65536) << "its memory goes with it, the rest is free";
    EXPECT_LE(taken.text.capacity(), 65536);
  }
  EXPECT_EQ(mine->request_bytes(), 0);
}

TEST(BodyBufferTest, StopsAtTheBudget) {
  MemoryBudgets budgets({.max_pending_request_bytes = 40'000, .connection_request_bytes = 40'000});
  const std::shared_ptr<ConnectionBudgets> mine = budgets.ForConnection("me");
  absl::StatusOr<ByteBudget::Share> other = mine->AcquireRequest(20'000);
  BodyBuffer body;
  ASSERT_TRUE(body.MakeRoom(*mine, std::nullopt, kMost).ok());
  body.Received(body.room());
  EXPECT_EQ(body.MakeRoom(*mine, std::nullopt, kMost).code(), absl::StatusCode::kResourceExhausted);
  *other = ByteBudget::Share();
  ASSERT_TRUE(body.MakeRoom(*mine, std::nullopt, kMost).ok());
  body.Received(body.room());
  EXPECT_EQ(body.MakeRoom(*mine, std::nullopt, kMost).code(), absl::StatusCode::kInvalidArgument)
      << "beside its own bytes it never fits";
  body.Take();
  EXPECT_EQ(mine->request_bytes(), 0);
}

TEST(BodyBufferTest, TakesLittleMoreThanABodyMayHave) {
  MemoryBudgets budgets({.max_pending_request_bytes = kMost, .connection_request_bytes = kMost});
  const std::shared_ptr<ConnectionBudgets> mine = budgets.ForConnection("me");
  BodyBuffer body;
  constexpr int64_t kBytes = 600'000;  // twice as much does not fit
  while (body.received() < kBytes) {
    ASSERT_TRUE(body.MakeRoom(*mine, std::nullopt, kBytes).ok()) << body.received();
    body.Received(body.room());
  }
  EXPECT_LT(mine->request_bytes(), kBytes + 20'000);
}

TEST(HttpMessageTest, RefusesByTheHead) {
  EXPECT_FALSE(UnfitBody("", std::nullopt, 10).has_value());
  EXPECT_FALSE(UnfitBody("gzip", 10, 10).has_value());
  EXPECT_EQ(UnfitBody("identity", 11, 10)->code, 413);
  EXPECT_FALSE(UnfitBody("GZIP", 10, 10).has_value());
  EXPECT_EQ(UnfitBody("br", 10, 10)->code, 415);
}

TEST(HttpMessageTest, RefusesBodiesWhoseEndIsUnclear) {
  EXPECT_FALSE(UnfitTransfer("chunked", false).has_value());
  EXPECT_FALSE(UnfitTransfer("Chunked", false).has_value());
  EXPECT_EQ(UnfitTransfer("chunked", true)->code, 400) << "HTTP/1.0 has no chunks";
  EXPECT_EQ(UnfitTransfer("xchunked", false)->code, 400);
  EXPECT_EQ(UnfitTransfer("chunked, identity", false)->code, 400);
  EXPECT_EQ(UnfitTransfer("gzip, chunked", false)->code, 501);
}

TEST(HttpTypesTest, AWeightOfZeroRefusesGzip) {
  const auto takes = [](const char* sent) {
    return TakesGzip([sent](absl::string_view name) -> std::optional<absl::string_view> {
      if (name != "accept-encoding") return std::nullopt;
      return sent;
    });
  };
  for (const char* sent : {"gzip", "br, GZIP", "gzip;q=1", "gzip; q=0.001", "gzip;Q=0.5"}) {
    EXPECT_TRUE(takes(sent)) << sent;
  }
  for (const char* sent : {"", "br", "gzip;q=0", "gzip; q=0.000", "gzip;Q=0"}) {
    EXPECT_FALSE(takes(sent)) << sent;
  }
}

}  // namespace
}  // namespace attendant
