// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/server/fuzzed_server.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/server/heap_peak.h"

namespace attendant {
namespace {

// What a request of n bytes may hold beyond its outputs, in bytes.
constexpr int64_t kHeldPerByte = 64;
constexpr int64_t kHeldAlways = 1 << 20;
// Outputs: f32 rows, the message and gRPC's buffers at the server, the client's own, and what is
// kept for each sequence.
constexpr int64_t kHeldPerAnswerByte = 8;
constexpr int64_t kScratchBytes = 1 << 20;  // of an attention worker
constexpr int64_t kClientPerByte = 4;       // of what it sends

InProcessServer::Options Options(const std::string& judge) {
  WriteTinyClassifier(judge, {"score"});
  InProcessServer::Options options;
  options.models = {{"judge", judge}};
  options.flags.encode.max_response_bytes = 1 << 20;
  options.flags.encode.max_attention_weight_bytes = 1 << 19;
  options.flags.attention.max_bytes = kScratchBytes;
  options.flags.attention.max_operations = int64_t{1} << 28;
  return options;
}

}  // namespace

FuzzedServer::FuzzedServer() : server_(Options(judge_.path())) {
  server_.AwaitReady();
  for (int i = 0; i < 20; ++i) pooled_ = Pooled();  // caches, threads
}

FuzzedServer& FuzzedServer::Get() {
  static FuzzedServer& server = *new FuzzedServer;
  return server;
}

void FuzzedServer::BeginMemory() { HeapGrowth(); }

void FuzzedServer::RequireMemory(const std::string& what, size_t bytes, int64_t answer_bytes) {
  const int64_t growth = HeapGrowth();
  const int64_t limit = (kHeldPerByte + kClientPerByte) * static_cast<int64_t>(bytes) +
                        kHeldAlways + kScratchBytes + kHeldPerAnswerByte * answer_bytes;
  Require(growth <= limit,
          absl::StrCat(what, " with ", bytes, " bytes, answered with ", answer_bytes, ", takes ",
                       growth, " bytes, at most ", limit));
}

void FuzzedServer::RequireGoodAnswer() {
  Require(Pooled() == pooled_, "a good request is answered as before");
}

std::string FuzzedServer::Pooled() {
  v1::EncodeResponse response;
  const grpc::Status status = CallEncode(server_.encoder(), HelloRequest(), response);
  Require(status.ok(), absl::StrCat("a good request is answered: ", status.error_message()));
  return response.pooled().data();
}

}  // namespace attendant
