// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/load/null_http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace attendant::bench {
namespace {

constexpr int kBacklog = 1024;
constexpr size_t kReadBytes = size_t{64} << 10;
constexpr absl::string_view kEndOfHead = "\r\n\r\n";

// The number in a header; `name` is in lower case.
std::optional<size_t> NumberIn(absl::string_view head, absl::string_view name) {
  const std::string begin = absl::StrCat("\r\n", name, ":");
  const size_t at = head.find(begin);
  if (at == absl::string_view::npos) return std::nullopt;
  head.remove_prefix(at + begin.size());
  size_t number = 0;
  if (!absl::SimpleAtoi(head.substr(0, head.find('\r')), &number)) return std::nullopt;
  return number;
}

std::string Message(absl::string_view status, absl::string_view headers, absl::string_view body,
                    absl::string_view rest = "") {
  return absl::StrCat("HTTP/1.1 ", status, "\r\n", headers,
                      "Content-Length: ", body.size() + rest.size(), "\r\n\r\n", body, rest);
}

bool SendAll(int connection, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace

NullHttp::NullHttp(const std::string& host, Answers answers, std::atomic<int64_t>& num_answered)
    : answers_(std::move(answers)), num_answered_(num_answered) {
  listener_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1 || bind(listener_, any, size) != 0 ||
      listen(listener_, kBacklog) != 0 || getsockname(listener_, any, &size) != 0) {
    return;
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

NullHttp::~NullHttp() {
  shutdown(listener_, SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  std::list<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    for (const int connection : connections_) shutdown(connection, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  absl::MutexLock lock(&mutex_);
  for (const int connection : connections_) close(connection);
  close(listener_);
}

void NullHttp::Accept() {
  while (true) {
    const int connection = accept(listener_, nullptr, nullptr);
    if (connection < 0) return;
    const int on = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    absl::MutexLock lock(&mutex_);
    connections_.push_back(connection);
    threads_.emplace_back([this, connection] { Serve(connection); });
  }
}

void NullHttp::Serve(int connection) {
  std::string received;
  std::vector<char> chunk(kReadBytes);
  for (ssize_t count; (count = read(connection, chunk.data(), chunk.size())) > 0;) {
    received.append(chunk.data(), static_cast<size_t>(count));
    while (true) {
      const size_t end = absl::string_view(received).find(kEndOfHead);
      if (end == std::string::npos) break;
      const std::string head = absl::AsciiStrToLower(received.substr(0, end + 2));
      const size_t body_at = end + kEndOfHead.size();
      const size_t whole = body_at + NumberIn(head, "content-length").value_or(0);
      if (received.size() < whole) break;
      const absl::string_view request = absl::string_view(received).substr(0, whole);
      const size_t path_at = request.find(' ') + 1;
      const absl::string_view path = request.substr(path_at, request.find(' ', path_at) - path_at);
      if (!SendAll(connection, Answer(path, head, request.substr(body_at)))) {
        shutdown(connection, SHUT_RDWR);
        return;
      }
      received.erase(0, whole);
    }
  }
  shutdown(connection, SHUT_RDWR);
}

std::string NullHttp::Answer(absl::string_view path, absl::string_view head,
                             absl::string_view body) {
  if (head.substr(0, 5) == "post ") {
    ++num_answered_;
    return AnswerInference(
        body.substr(0, NumberIn(head, "inference-header-content-length").value_or(body.size())));
  }
  const auto page = answers_.pages.find(path);
  if (page == answers_.pages.end()) {
    return Message("404 Not Found", "Content-Type: application/json\r\n",
                   R"({"error":"no such path"})");
  }
  return Message("200 OK", "Content-Type: application/json\r\n", page->second);
}

// perf_analyzer --async finds its requests by their ids.
std::string NullHttp::AnswerInference(absl::string_view request) const {
  using nlohmann::json;
  const json asked = json::parse(request, nullptr, /*allow_exceptions=*/false);
  json output{{"name", answers_.output}, {"datatype", "FP32"}};
  output["shape"] = {1, answers_.tensor.size() / sizeof(float)};
  output["parameters"]["binary_data_size"] = answers_.tensor.size();
  json answer{{"model_name", answers_.model}, {"model_version", answers_.version}};
  answer["outputs"].push_back(std::move(output));
  if (asked.is_object() && asked.contains("id")) answer["id"] = asked["id"];
  const std::string text = answer.dump();
  return Message("200 OK",
                 absl::StrCat("Content-Type: application/octet-stream\r\n",
                              "Inference-Header-Content-Length: ", text.size(), "\r\n"),
                 text, answers_.tensor);
}

}  // namespace attendant::bench
