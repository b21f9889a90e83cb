// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace attendant {
namespace {

constexpr char kRequest[] = "GET / HTTP/1.1\r\n\r\n";

class HttpConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    server_ = FileDescriptor(fds[0]);
    client_ = FileDescriptor(fds[1]);
    ASSERT_EQ(send(client_.get(), kRequest, sizeof(kRequest) - 1, 0), std::ssize(kRequest) - 1);
  }

  // All that the client can read now.
  std::string Take() const {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(client_.get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }

  // What one send takes of a long answer.
  size_t Capacity() {
    HttpConnection connection(std::move(server_), start_);
    EXPECT_TRUE(connection.Continue(Answer(size_t{1} << 22), start_));
    return Take().size();
  }

  static HttpHandler Answer(size_t body) {
    return [body](const HttpRequest&) { return HttpResponse{.body = std::string(body, 'x')}; };
  }

  const absl::Time start_ = absl::UnixEpoch() + absl::Hours(1);
  FileDescriptor server_, client_;
};

TEST_F(HttpConnectionTest, EachStepHasItsTime) {
  HttpConnection connection(std::move(server_), start_);
  EXPECT_EQ(connection.deadline(), start_ + HttpConnection::kReadTime);
  const absl::Time answered = start_ + absl::Seconds(2);
  ASSERT_TRUE(connection.Continue(Answer(size_t{1} << 22), answered));
  EXPECT_EQ(connection.events(), POLLOUT);
  EXPECT_EQ(connection.deadline(), answered + HttpConnection::kWriteTime);
  const absl::Time written = answered + absl::Seconds(5);
  std::string all = Take();
  while (connection.events() == POLLOUT) {
    ASSERT_TRUE(connection.Continue(Answer(0), written));
    all += Take();
  }
  EXPECT_EQ(connection.deadline(), written + HttpConnection::kCloseTime);
  EXPECT_GT(all.size(), size_t{1} << 22);
}

// However much of an answer the system takes at a time.
TEST_F(HttpConnectionTest, TheLastByteIsSentToo) {
  const size_t capacity = Capacity();
  SetUp();
  const size_t head = AnswerHttp(kRequest, Answer(capacity)).size() - capacity;
  for (const size_t rest : {0, 1, 2}) {
    HttpConnection connection(std::move(server_), start_);
    ASSERT_TRUE(connection.Continue(Answer(capacity - head + rest), start_));
    std::string all = Take();
    EXPECT_EQ(connection.events() == POLLOUT, rest > 0) << "it took as much as before";
    while (connection.events() == POLLOUT) {
      ASSERT_TRUE(connection.Continue(Answer(0), start_));
      all += Take();
    }
    EXPECT_EQ(all.size(), capacity + rest);
    SetUp();
  }
}

}  // namespace
}  // namespace attendant
