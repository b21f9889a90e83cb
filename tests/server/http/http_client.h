// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace attendant {

struct HttpAnswer {
  int code = 0;
  std::string head;  // with its empty line
  std::string body;
};

// One connection to a port of this machine, with bytes as the test writes them.
class HttpClient {
 public:
  // `receive_buffer`: bytes of answers that the system holds, about; 0: its default.
  explicit HttpClient(int port, int receive_buffer = 0) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
      EXPECT_EQ(setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer)),
                0);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~HttpClient() { Close(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void Close() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

  void Write(const std::string& text) { EXPECT_TRUE(TryWrite(text)); }
  // False: the other side has closed.
  bool TryWrite(const std::string& text) {
    size_t written = 0;
    while (written < text.size()) {
      const ssize_t count =
          send(socket_, text.data() + written, text.size() - written, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return false;
      written += static_cast<size_t>(count);
    }
    return true;
  }
  // Tells the other side that nothing more comes.
  void EndWriting() { shutdown(socket_, SHUT_WR); }
  void Post(const std::string& path, const std::string& body, const std::string& headers = "") {
    Write(absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\nContent-Length: ",
                       body.size(), "\r\n", headers, "\r\n", body));
  }
  void Get(const std::string& path, const std::string& headers = "") {
    Write(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", headers, "\r\n"));
  }

  // Sends one byte and waits a little for an answer. False: the other side has closed.
  bool Drip(char byte) {
    if (!TryWrite(std::string(1, byte))) return false;
    pollfd polled = {socket_, POLLIN, 0};
    const int ready = poll(&polled, 1, 10);
    return ready == 0 || (ready < 0 && errno == EINTR);  // a signal ends the wait
  }
  std::string ReadAll() {
    while (More()) {
    }
    return std::exchange(read_, "");
  }
  // One answer, with what Content-Length says of its body. Code 0: the connection has ended.
  HttpAnswer Read(bool with_body = true) {
    size_t end;
    while ((end = read_.find("\r\n\r\n")) == std::string::npos) {
      if (!More()) return {};
    }
    HttpAnswer answer;
    answer.head = read_.substr(0, end + 4);
    read_.erase(0, end + 4);
    EXPECT_TRUE(absl::SimpleAtoi(answer.head.substr(9, 3), &answer.code)) << answer.head;
    size_t length = 0;
    const std::string head = absl::AsciiStrToLower(answer.head);
    const size_t at = head.find("content-length: ");
    if (with_body && at != std::string::npos) length = std::stoul(head.substr(at + 16));
    while (read_.size() < length && More()) {
    }
    answer.body = read_.substr(0, length);
    read_.erase(0, length);
    return answer;
  }

 private:
  bool More() {
    char buffer[4096];
    ssize_t count;
    while ((count = read(socket_, buffer, sizeof(buffer))) < 0 && errno == EINTR) {
    }
    if (count > 0) read_.append(buffer, static_cast<size_t>(count));
    return count > 0;
  }

  int socket_;
  std::string read_;
};

// The answers to requests that have a connection each.
inline HttpAnswer HttpGet(int port, const std::string& path, const std::string& headers = "") {
  HttpClient client(port);
  client.Get(path, headers);
  return client.Read();
}
inline HttpAnswer HttpPost(int port, const std::string& path, const std::string& body,
                           const std::string& headers = "") {
  HttpClient client(port);
  client.Post(path, body, headers);
  return client.Read();
}

}  // namespace attendant
