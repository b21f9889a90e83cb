// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace attendant::client {

inline std::string CannedAnswer(int status, const std::string& body) {
  return absl::StrCat("HTTP/1.1 ", status, " x\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

// A server that sends canned answers, by the request's body, and where that is empty by its path. A
// request without one gets no answer. An empty answer, and one with "Connection: close", is
// followed by the end of the connection.
class CannedServer {
 public:
  using Answers = std::map<std::string, std::string>;

  explicit CannedServer(Answers answers) : answers_(std::move(answers)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }

  ~CannedServer() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    CloseConnections();
    for (std::thread& thread : threads_) thread.join();
    for (int connection : connections_) close(connection);
    close(listener_);
  }

  int port() const { return port_; }

  size_t num_connections() {
    absl::MutexLock lock(&mutex_);
    return connections_.size();
  }

  // Of the latest request that has come, from "POST" to the last line.
  std::string last_head() {
    absl::MutexLock lock(&mutex_);
    return last_head_;
  }

  // As a server does with connections that were idle for too long.
  void CloseConnections() {
    absl::MutexLock lock(&mutex_);
    for (int connection : connections_) shutdown(connection, SHUT_RDWR);
  }

 private:
  void Accept() {
    while (true) {
      const int connection = accept(listener_, nullptr, nullptr);
      if (connection < 0) return;
      absl::MutexLock lock(&mutex_);
      connections_.push_back(connection);
      threads_.emplace_back([this, connection] { Serve(connection); });
    }
  }

  // What the answer goes by.
  static std::string KeyOf(const std::string& head, const std::string& body) {
    if (!body.empty()) return body;
    const size_t path = head.find(' ') + 1;
    return head.substr(path, head.find(' ', path) - path);
  }

  void Serve(int connection) {
    std::string received;
    char chunk[4096];
    for (ssize_t count; (count = read(connection, chunk, sizeof(chunk))) > 0;) {
      received.append(chunk, static_cast<size_t>(count));
      const size_t end = received.find("\r\n\r\n");
      const size_t field = received.find("\r\nContent-Length: ");
      size_t length = 0;
      if (end == std::string::npos || field == std::string::npos) continue;
      const size_t digits = field + 18;
      EXPECT_TRUE(
          absl::SimpleAtoi(received.substr(digits, received.find('\r', digits) - digits), &length));
      if (received.size() < end + 4 + length) continue;
      const std::string head = received.substr(0, end);
      {
        absl::MutexLock lock(&mutex_);
        last_head_ = head;
      }
      const auto answer = answers_.find(KeyOf(head, received.substr(end + 4)));
      received.clear();
      if (answer == answers_.end()) continue;
      const std::string& bytes = answer->second;
      send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      const bool ends = bytes.empty() || absl::StrContains(bytes, "Connection: close");
      if (ends) shutdown(connection, SHUT_RDWR);
    }
  }

  const Answers answers_;
  int listener_ = -1;
  int port_ = 0;
  std::thread acceptor_;
  absl::Mutex mutex_;
  std::vector<int> connections_;
  std::string last_head_;
  std::list<std::thread> threads_;
};

}  // namespace attendant::client
