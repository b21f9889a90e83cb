// SPDX-License-Identifier: Apache-2.0
// Mistakes that the program finds by itself: it says which, and the server gets no request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "tests/client/cli/command_fixture.h"

namespace attendant::client {
namespace {

using ::testing::HasSubstr;

class UsageTest : public CommandTest {
 protected:
  void ExpectMistake(const std::vector<std::string>& args, const std::string& words) {
    EXPECT_EQ(RunAsGiven(args), kExitUsage) << args[0];
    EXPECT_THAT(err_, HasSubstr(words));
    EXPECT_TRUE(server_.encode_requests().empty());
  }
};

TEST_F(UsageTest, AUrlIsNoServer) {
  ExpectMistake({"embed", "--server=http://127.0.0.1:8002", "a"}, "is a URL: give HOST:PORT");
  for (const char* protocol : {"attendant", "kserve", "tei"}) {
    ExpectMistake({"load", "--server=https://attendant", "--model=toy",
                   std::string("--protocol=") + protocol},
                  "is a URL: give HOST:PORT");
  }
}

TEST_F(UsageTest, AnAddressThatNoServerHas) {
  for (const char* command : {"models", "health", "embed", "load"}) {
    ExpectMistake({command, "--server="}, "the target is empty: give HOST:PORT");
  }
  ExpectMistake({"models", "--server=127.0.0.1:65536"}, "has a port above 65535");
  ExpectMistake({"models", "--server=dns:///[::1]:99999999999"}, "has a port above 65535");
}

TEST_F(UsageTest, AFileOfTheConnectionIsMissing) {
  for (const char* protocol : {"attendant", "kserve", "tei"}) {
    ExpectMistake(
        {"load", "--tls_ca=/nonexistent.pem", "--model=toy", std::string("--protocol=") + protocol},
        "cannot read the PEM file /nonexistent.pem");
  }
}

// Only gRPC reads what is in them. It says that there is no address.
TEST_F(UsageTest, AFileOfTheConnectionIsDamaged) {
  const std::string damaged =
      WriteFile("ca.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  for (const char* command : {"models", "embed", "load"}) {
    EXPECT_EQ(Run({command, "--tls_ca=" + damaged}, "text"), kExitUsage) << command;
    EXPECT_THAT(err_, HasSubstr("(the TLS files cannot be used: is one damaged"));
  }
}

TEST_F(UsageTest, FlagsThatAreNotUtf8) {
  ExpectMistake({"rerank", "--query=a\xff", "--model=toy", "text"},
                "--query is not valid UTF-8 at byte 1");
  ExpectMistake({"embed", "--model=\xff", "text"}, "--model is not valid UTF-8 at byte 0");
  ExpectMistake({"embed", "--model=toy", "--prompt_name=\xff", "text"},
                "--prompt_name is not valid UTF-8 at byte 0");
  ExpectMistake({"attend", "--model=\xff"}, "--model is not valid UTF-8 at byte 0");
  ExpectMistake({"health", "--service=\xff"}, "--service is not valid UTF-8 at byte 0");
}

TEST_F(UsageTest, AFolderIsNoFile) {
  const std::string folder = ::testing::TempDir();
  ExpectMistake({"load", "--model=toy", "--replay=" + folder},
                "--replay: the file " + folder + " cannot be read");
  ExpectMistake({"load", "--model=toy", "--texts=" + folder},
                "the file " + folder + " cannot be read");
  ExpectMistake({"load", "--model=toy", "--lengths=file:" + folder},
                "--lengths: the file " + folder + " cannot be read");
}

TEST_F(UsageTest, WhatAFileHoldsDoesNotReachTheTerminal) {
  ExpectMistake({"load", "--model=toy", "--lengths=file:" + WriteFile("lengths", "\x1b[2J")},
                "holds ' [2J'");
  ExpectMistake({"load", "--lengths=file:" + WriteFile("line", std::string(1000, 'x'))},
                "holds '" + std::string(40, 'x') + "'; it must");
}

// As a load leaves it that has failed.
TEST_F(UsageTest, AReportThatIsEmpty) {
  const std::string empty = WriteFile("a.json", "");
  ExpectMistake({"compare", empty, empty}, "the file " + empty + " is empty");
  ExpectMistake({"compare", ::testing::TempDir(), empty}, "cannot be read");
}

// As of a variable of the shell that is not set; /config.json is not meant.
TEST_F(UsageTest, AFolderWithoutAName) {
  ExpectMistake({"inspect", ""}, "inspect takes one folder");
}

TEST_F(UsageTest, AKindThatThereIsNot) {
  ExpectMistake({"attend", "--kind=transformer"}, "--kind");
}

TEST_F(UsageTest, ANumberThatItsFieldDoesNotHold) {
  ExpectMistake({"tokens", "--fill_mask", "--top=4294967297", "--model=toy", "a"},
                "--top cannot be '4294967297'");
}

// As /dev/full is one.
TEST_F(UsageTest, ALineWithoutAnEnd) {
  const std::string words = " is longer than 67108864 bytes";
  ExpectMistake({"embed", "--model=toy", "--file=/dev/full"},
                "a line of the file /dev/full" + words);
  ExpectMistake({"load", "--model=toy", "--texts=/dev/full"}, "line 1 of /dev/full" + words);
  ExpectMistake({"load", "--model=toy", "--replay=/dev/full"}, "line 1 of the trace" + words);
}

TEST_F(UsageTest, FlagsOfOtherLoads) {
  for (const auto& [flag, protocol, users] :
       {std::tuple("output=hidden", "tei", "attendant"),
        std::tuple("vocab=9", "cohere", "attendant, kserve, kserve_http, openai"),
        std::tuple("shape=x:3", "openai", "kserve, kserve_http"),
        std::tuple("tensors=json", "kserve", "kserve_http")}) {
    const std::string name(flag, strcspn(flag, "="));
    ExpectMistake(
        {"load", absl::StrCat("--protocol=", protocol), "--model=toy", absl::StrCat("--", flag)},
        absl::StrCat("--", name, ": --protocol ", protocol, " does not use it, only ", users));
  }
  const std::string texts = "--texts=" + WriteFile("texts", "one\n");
  for (const char* flag : {"--vocab=9", "--lengths=fixed:3"}) {
    ExpectMistake({"load", "--model=toy", texts, flag}, "they do not go with --texts");
  }
  const std::string trace =
      "--replay=" + WriteFile("trace", "{\"timestamp\":3000,\"input_length\":3}\n");
  for (const char* flag : {"--batch=2", "--lengths=fixed:3"}) {
    ExpectMistake({"load", "--model=toy", trace, flag}, "they do not go with --replay");
  }
}

TEST_F(UsageTest, ATimeoutThatHasPassed) {
  for (const char* command : {"models", "health", "embed", "load"}) {
    ExpectMistake({command, "--timeout=0"}, "--timeout cannot be 0: it must be above 0");
    ExpectMistake({command, "--timeout=-1s"}, "--timeout cannot be -1s: it must be above 0");
  }
}

TEST_F(UsageTest, AWaitThatIsNegative) {
  ExpectMistake({"health", "--wait=-5s"}, "--wait cannot be negative");
}

TEST_F(UsageTest, AWatchThatWaits) {
  ExpectMistake({"health", "--watch", "--wait=5s"}, "--watch and --wait exclude each other");
}

TEST_F(UsageTest, LengthsAreWholeNumbers) {
  ExpectMistake({"attend", "--query_lengths=3,2.5"},
                "--query_lengths: '2.5' is not a whole number");
  ExpectMistake({"attend", "--slopes=0.5"}, "there is no query");
}

}  // namespace
}  // namespace attendant::client
