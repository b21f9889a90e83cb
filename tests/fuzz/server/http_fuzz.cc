// SPDX-License-Identifier: Apache-2.0
// Bytes of any kind to the HTTP port of a whole server in this process.
//
// Input: a method and a path up to a newline; further lines of the head up to a byte 0; the body.
// One that begins with a newline: the bytes of a connection, whose client then sends no more.
//
// Ends the process, saying why, unless
//   a request is answered, with a code that a client can act on, and JSON that is JSON;
//   client and server took no more memory than server/README.md promises;
//   the server then answers a good request as it did before.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "server/http/gzip.h"
#include "tests/fuzz/fuzzed_server.h"
#include "tests/fuzz/harness.h"

namespace attendant {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using Answer = http::response<http::string_body>;

constexpr size_t kMostAnswerBytes = 64 << 20;

// A connection of its own. The port closes behind an answer to a head that it cannot read, with
// bytes still under way: then a write fails, and the answer may be lost.
class Connection {
 public:
  explicit Connection(int port) : socket_(loop_) {
    socket_.connect({asio::ip::address_v4::loopback(), static_cast<uint16_t>(port)});
  }

  // Whether all bytes went out.
  bool Write(const std::string& bytes) {
    boost::system::error_code error;
    asio::write(socket_, asio::buffer(bytes), error);
    return !error;
  }
  void EndWriting() {
    boost::system::error_code error;
    socket_.shutdown(Tcp::socket::shutdown_send, error);
  }

  // The next final answer; nothing when the connection ends.
  std::optional<Answer> Read(bool has_body) {
    for (;;) {
      http::response_parser<http::string_body> parser;
      parser.body_limit(kMostAnswerBytes);
      parser.skip(!has_body);
      boost::system::error_code error;
      http::read(socket_, buffer_, parser, error);
      if (error) return std::nullopt;
      if (parser.get().result_int() != 100) return parser.release();
    }
  }

 private:
  asio::io_context loop_;
  Tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
};

void RequireGood(const std::string& what, const Answer& answer) {
  const unsigned code = answer.result_int();
  Require(code >= 200 && code < 600 && code != 500,
          absl::StrCat(what, " is answered with ", code, ": ", answer.body()));
  if (!answer.body().empty() && answer[http::field::content_encoding].empty() &&
      absl::StartsWith(std::string(answer[http::field::content_type]), "application/json") &&
      answer["Inference-Header-Content-Length"].empty()) {
    Require(nlohmann::json::accept(answer.body()),
            absl::StrCat(what, " is answered in JSON: ", answer.body()));
  }
  Require(code < 400 || code == 503 || !answer.body().empty() || answer.need_eof() ||
              absl::StartsWith(what, "HEAD"),
          absl::StrCat(what, " is told what is wrong: ", code));
}

// The bytes of the answers.
int64_t Ask(int port, absl::string_view line, absl::string_view head, absl::string_view body) {
  Connection connection(port);
  const bool written = connection.Write(
      absl::StrCat(line, " HTTP/1.1\r\nHost: localhost\r\nContent-Length: ", body.size(), "\r\n",
                   head, "\r\n", body));
  const std::optional<Answer> answer = connection.Read(!absl::StartsWith(line, "HEAD "));
  Require(answer.has_value() || !written, absl::StrCat(line, " is answered"));
  if (!answer.has_value()) return 0;
  RequireGood(std::string(line), *answer);
  return static_cast<int64_t>(answer->body().size());
}

int64_t Send(int port, absl::string_view bytes) {
  Connection connection(port);
  connection.Write(std::string(bytes));
  connection.EndWriting();
  int64_t answered = 0;
  while (const std::optional<Answer> answer = connection.Read(!absl::StartsWith(bytes, "HEAD "))) {
    RequireGood("a connection", *answer);
    answered += static_cast<int64_t>(answer->body().size());
  }
  return answered;
}

void Run(absl::string_view input) {
  FuzzedServer& server = FuzzedServer::Get();
  const int port = server.server().http_port();
  const size_t line_end = input.find('\n');
  if (line_end == absl::string_view::npos) return;
  const absl::string_view line = input.substr(0, line_end), rest = input.substr(line_end + 1);
  FuzzedServer::BeginMemory();
  int64_t answered = 0;
  size_t bytes = input.size();
  if (line.empty()) {
    answered = Send(port, rest);
  } else {
    const size_t head_end = rest.find('\0');
    const bool has_head = head_end != absl::string_view::npos;
    const absl::string_view head = has_head ? rest.substr(0, head_end) : "";
    const absl::string_view body = has_head ? rest.substr(head_end + 1) : rest;
    answered = Ask(port, line, head, body);
    bytes += static_cast<size_t>(GunzippedBytes(body).value_or(0));  // zero where it is no gzip
  }
  FuzzedServer::RequireMemory(std::string(line), bytes, answered);
  server.RequireGoodAnswer();
}

}  // namespace
}  // namespace attendant

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attendant::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
