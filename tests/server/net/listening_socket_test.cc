// SPDX-License-Identifier: Apache-2.0
#include "server/net/listening_socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

namespace attendant {
namespace {

// What a name stands for that has several IPv4 addresses. Linux has all of 127.0.0.0/8.
class Addresses {
 public:
  Addresses(const std::vector<const char*>& numbers, int port)
      : sockets_(numbers.size()), infos_(numbers.size()) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      sockets_[i].sin_family = AF_INET;
      sockets_[i].sin_port = htons(static_cast<uint16_t>(port));
      EXPECT_EQ(inet_pton(AF_INET, numbers[i], &sockets_[i].sin_addr), 1);
      infos_[i].ai_family = AF_INET;
      infos_[i].ai_addr = reinterpret_cast<sockaddr*>(&sockets_[i]);
      infos_[i].ai_addrlen = sizeof(sockaddr_in);
      if (i > 0) infos_[i - 1].ai_next = &infos_[i];
    }
  }
  const addrinfo& first() const { return infos_.front(); }

 private:
  std::vector<sockaddr_in> sockets_;
  std::vector<addrinfo> infos_;
};

constexpr char kLacking[] = "192.0.2.1";  // of documents: no machine has it

absl::StatusOr<ListeningSocket> ListenOnNumbers(const std::vector<const char*>& numbers, int port) {
  const Addresses addresses(numbers, port);
  return ListenOnAll(addresses.first(), "name:0");
}

bool Connects(const char* number, int port) {
  const Addresses address({number}, port);
  const FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(fd.get(), address.first().ai_addr, address.first().ai_addrlen) == 0;
}

TEST(ListeningSocketTest, ANameIsHeardAtEveryAddressOnOnePort) {
  const auto socket = ListenOnNumbers({"127.0.0.1", "127.0.0.2", "127.0.0.3"}, 0);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_EQ(socket->fds.size(), 3u);
  EXPECT_TRUE(socket->loopback);
  for (const char* number : {"127.0.0.1", "127.0.0.2", "127.0.0.3"}) {
    EXPECT_TRUE(Connects(number, socket->port)) << number;
  }
}

TEST(ListeningSocketTest, AnAddressThatThisMachineLacksIsLeftOut) {
  for (const auto& numbers : {std::vector<const char*>{kLacking, "127.0.0.1"}, {"127.0.0.1", kLacking}}) {
    const auto socket = ListenOnNumbers(numbers, 0);
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_EQ(socket->fds.size(), 1u);
  }
  EXPECT_EQ(ListenOnNumbers({kLacking}, 0).status().code(), absl::StatusCode::kUnavailable);
}

TEST(ListeningSocketTest, AnAddressInUseMayNotBeLeftOut) {
  const auto taken = ListenOn("127.0.0.2:0");
  ASSERT_TRUE(taken.ok()) << taken.status();
  for (const auto& numbers : {std::vector<const char*>{"127.0.0.2"},
                              {"127.0.0.1", "127.0.0.2"},
                              {"127.0.0.2", "127.0.0.1"},
                              {"127.0.0.2", kLacking, "127.0.0.1"}}) {
    const absl::Status status = ListenOnNumbers(numbers, taken->port).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << numbers.size();
    EXPECT_NE(status.message().find("cannot listen on name:0"), std::string::npos) << status;
  }
}

// The system chooses a port that is free on the first address. With 400 of the second address in use,
// one choice in 70 is not free there.
TEST(ListeningSocketTest, APortInUseOnALaterAddressIsNotChosen) {
  std::vector<ListeningSocket> taken;
  while (taken.size() < 400) {
    taken.push_back(*ListenOn("127.0.0.2:0"));
  }
  for (int i = 0; i < 2000; ++i) {
    const auto socket = ListenOnNumbers({"127.0.0.1", "127.0.0.2"}, 0);
    ASSERT_TRUE(socket.ok()) << socket.status() << " in round " << i;
  }
}

TEST(ListeningSocketTest, TakesEveryAddressOfAName) {
  const auto socket = ListenOn("localhost:0");
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_TRUE(socket->loopback);
  EXPECT_GT(socket->port, 0);
  EXPECT_TRUE(Connects("127.0.0.1", socket->port));
}

TEST(ListeningSocketTest, SharesNoAddress) {
  const auto socket = ListenOn("127.0.0.1:0");
  ASSERT_TRUE(socket.ok()) << socket.status();
  const std::string taken = "127.0.0.1:" + std::to_string(socket->port);
  EXPECT_EQ(ListenOn(taken).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ListenOn("localhost:" + std::to_string(socket->port)).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ListeningSocketTest, KnowsWhetherOthersCanConnect) {
  EXPECT_TRUE(ListenOn("127.0.0.1:0")->loopback);
  EXPECT_FALSE(ListenOn("0.0.0.0:0")->loopback);
}

}  // namespace
}  // namespace attendant
