// SPDX-License-Identifier: Apache-2.0
#include "client/address/host_port.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace attendant {
namespace {

// "HOST PORT", or "none".
std::string Read(absl::string_view text, const HostPortOptions& options = {}) {
  const std::optional<HostPort> read = ParseHostPort(text, options);
  return read.has_value() ? read->host + " " + read->port : "none";
}

struct Case {
  std::string text, expected;
};

TEST(HostPortTest, ReadsNamesAndAddresses) {
  const std::vector<Case> cases = {
      {"host:80", "host 80"},
      {"a-b_c.example.org:1", "a-b_c.example.org 1"},
      {"127.0.0.1:65535", "127.0.0.1 65535"},
      {"[::1]:8002", "::1 8002"},
      {"[::ffff:127.0.0.1]:8002", "::ffff:127.0.0.1 8002"},
      {"[::]:00080", ":: 00080"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Read(text), expected) << text;
}

TEST(HostPortTest, RefusesAllElse) {
  const std::vector<std::string> texts = {
      // Ports.
      "host:", "host:0", "host:65536", "host:4294967376", "host:abc", "host:8x", "host:+80",
      "host:-1", "host: 80", "host:80 ", "host:80\n", "host:80/path", "[::1]:", "[::1]:0",
      "[::1]:http",
      // Ports that are missing.
      "", ":", "host", "[::1]", "[::1]80",
      // Brackets.
      "::1:80", "::1", "[::1:80", "::1]:80", "[host]:80", "[127.0.0.1]:80", "[[::1]]:80",
      "x[::1]:80", "[::1]x:80", "[::1]:80]", "]:80", "[:80",
      // Hosts.
      ":80", "[]:80", "host%eth0:80", " host:80", "a b:80", "user@host:80", "http://host:80", "a/b:80", "*:80",
      "h\xc3\xb6st:80", "host\r\nX:80", std::string("ho\0st:80", 8)};
  for (const std::string& text : texts) {
    EXPECT_EQ(Read(text), "none") << text;
    EXPECT_EQ(Read(text, {.zone = false}), "none") << text;
  }
}

TEST(HostPortTest, PortZeroIsForListeners) {
  const HostPortOptions options = {.port_zero = true};
  EXPECT_EQ(Read("127.0.0.1:0", options), "127.0.0.1 0");
  EXPECT_EQ(Read("[::1]:0", options), "::1 0");
  EXPECT_EQ(Read("host:80", options), "host 80");
  for (const char* text : {"host:", "host", "host:65536", ":0"}) {
    EXPECT_EQ(Read(text, options), "none") << text;
  }
}

TEST(HostPortTest, AZoneCanBeRefused) {
  EXPECT_EQ(Read("[fe80::1%eth0.2]:80"), "fe80::1%eth0.2 80");
  EXPECT_EQ(Read("[fe80::1%eth0.2]:80", {.zone = false}), "none");
  EXPECT_EQ(Read("[fe80::1]:80", {.zone = false}), "fe80::1 80");
}

TEST(HostPortTest, ADefaultPortIsForAddressesWithoutOne) {
  const HostPortOptions options = {.default_port = "443"};
  const std::vector<Case> cases = {
      {"host", "host 443"}, {"host:80", "host 80"}, {"127.0.0.1", "127.0.0.1 443"},
      {"[::1]", "::1 443"}, {"[::1]:80", "::1 80"}, {"host:", "none"},
      {"[::1]:", "none"},   {"::1", "none"},        {"::1:80", "none"},
      {"[::1", "none"},     {"", "none"},           {":80", "none"},
      {"[host]", "none"},   {"host:0", "none"},     {"[::1]80", "none"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Read(text, options), expected) << text;
}

}  // namespace
}  // namespace attendant
