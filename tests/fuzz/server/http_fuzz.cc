// SPDX-License-Identifier: Apache-2.0
// Bytes of any kind to the HTTP port of a whole server in this process.
//
// Input: a method and a path up to a newline; further lines of the head up to a byte 0; the body.
// One that begins with a newline: the bytes of a connection, whose client then sends no more.
//
// Ends the process, saying why, unless
//   a request is answered, with a code that a client can act on, and JSON that is JSON;
//   client and server took no more memory than docs/bounds.md promises;
//   the server then answers a good request as it did before.
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "server/http/gzip.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/server/fuzzed_server.h"
#include "tests/server/http/http_client.h"

namespace attendant {
namespace {

// The final answer: servers may say before it that they go on.
HttpAnswer ReadFinal(HttpClient& client, absl::string_view line) {
  for (;;) {
    HttpAnswer answer = client.Read(!absl::StartsWith(line, "HEAD "));
    if (answer.code != 100) return answer;
  }
}

bool IsJson(const HttpAnswer& answer) {
  const std::string head = absl::AsciiStrToLower(answer.head);
  return absl::StrContains(head, "\r\ncontent-type: application/json") &&
         !absl::StrContains(head, "\r\ncontent-encoding:") &&
         !absl::StrContains(head, "\r\ninference-header-content-length:");
}

void RequireGood(absl::string_view line, const HttpAnswer& answer) {
  Require(answer.code >= 200 && answer.code < 600 && answer.code != 500,
          absl::StrCat(line, " is answered with a code: ", answer.head, answer.body));
  if (absl::StartsWith(line, "HEAD ")) return;
  Require(answer.body.empty() || !IsJson(answer) || nlohmann::json::accept(answer.body),
          absl::StrCat(line, " is answered in JSON: ", answer.body));
  Require(answer.code < 400 || answer.code == 503 || !answer.body.empty(),
          absl::StrCat(line, " is told what is wrong: ", answer.head));
}

// The bytes of the answer. The port closes behind a head that it cannot read: then a write may
// fail, and the answer be lost. Half a line at the end of `head` becomes a whole one: without the
// empty line behind it the port would wait for more, and close without an answer.
int64_t Ask(int port, absl::string_view line, absl::string_view head, absl::string_view body) {
  HttpClient client(port);
  const absl::string_view end = head.empty() || absl::EndsWith(head, "\r\n") ? "" : "\r\n";
  const bool written = client.TryWrite(
      absl::StrCat(line, " HTTP/1.1\r\nHost: localhost\r\nContent-Length: ", body.size(), "\r\n",
                   head, end, "\r\n", body));
  const HttpAnswer answer = ReadFinal(client, line);
  Require(answer.code != 0 || !written, absl::StrCat(line, " is answered"));
  if (answer.code != 0) RequireGood(line, answer);
  return static_cast<int64_t>(answer.body.size());
}

int64_t Send(int port, absl::string_view bytes) {
  HttpClient client(port);
  client.TryWrite(std::string(bytes));
  client.EndWriting();
  int64_t answered = 0;
  for (;;) {
    const HttpAnswer answer = ReadFinal(client, bytes);
    if (answer.code == 0) return answered;
    RequireGood(bytes.substr(0, bytes.find('\r')), answer);
    answered += static_cast<int64_t>(answer.body.size());
  }
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
