// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzzed_server.h"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/heap_peak.h"
#include "tests/server/in_process_server.h"

namespace attendant {
namespace {

constexpr std::chrono::seconds kLongestCall{20};

// What a request of n bytes may hold beyond its outputs, in bytes.
constexpr int64_t kHeldPerByte = 64;
constexpr int64_t kHeldAlways = 1 << 20;
// Outputs: f32 rows, the message and gRPC's buffers at the server, the client's own, and what is
// kept for each sequence.
constexpr int64_t kHeldPerAnswerByte = 8;
constexpr int64_t kScratchBytes = 1 << 20;  // of an attention worker
constexpr int64_t kClientPerByte = 4;       // of what it sends

void Require(bool held, const std::string& promise) {
  if (held) return;
  std::fprintf(stderr, "broken: %s\n", promise.c_str());
  std::abort();
}

struct RawEnd {
  grpc::Status status;
  size_t answers = 0;
  int64_t answer_bytes = 0;
};

// One call of messages as they are. Reads and writes at the same time: a stream that is not read
// takes no more messages.
class RawCall {
 public:
  RawCall(grpc::GenericStub& stub, const char* path, const std::vector<grpc::ByteBuffer>& messages)
      : messages_(messages), call_(stub.PrepareCall(&context_, path, &queue_)) {}

  RawEnd Run() {
    call_->StartCall(Tag(kStart));
    for (int open = 1; open > 0;) {
      const auto [operation, ok] = Next();
      open += After(operation, ok) - 1;
    }
    return end_;
  }

 private:
  enum Operation { kStart, kRead, kWrite, kWritesDone, kFinish };

  static void* Tag(Operation operation) {
    return reinterpret_cast<void*>(static_cast<intptr_t>(operation));
  }

  std::pair<Operation, bool> Next() {
    void* tag = nullptr;
    bool ok = false;
    const bool came = queue_.AsyncNext(&tag, &ok, limit_) == grpc::CompletionQueue::GOT_EVENT;
    Require(came, absl::StrCat("a call ends within ", kLongestCall.count(), " s"));
    return {static_cast<Operation>(reinterpret_cast<intptr_t>(tag)), ok};
  }

  // Starts what follows an operation; returns how many operations that are.
  int After(Operation operation, bool ok) {
    switch (operation) {
      case kStart:
        call_->Read(&answer_, Tag(kRead));
        return 1 + StartWrite();
      case kWrite:
        return ok ? StartWrite() : 0;
      case kRead:
        if (!ok) {
          call_->Finish(&end_.status, Tag(kFinish));
          return 1;
        }
        ++end_.answers;
        end_.answer_bytes += static_cast<int64_t>(answer_.Length());
        call_->Read(&answer_, Tag(kRead));
        return 1;
      case kWritesDone:
      case kFinish:
        return 0;
    }
    return 0;
  }

  int StartWrite() {
    if (written_ < messages_.size()) {
      call_->Write(messages_[written_++], Tag(kWrite));
    } else {
      call_->WritesDone(Tag(kWritesDone));
    }
    return 1;
  }

  const std::vector<grpc::ByteBuffer>& messages_;
  const std::chrono::system_clock::time_point limit_ =
      std::chrono::system_clock::now() + kLongestCall;
  size_t written_ = 0;
  RawEnd end_;
  grpc::ByteBuffer answer_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

// The server, and a good request's answer.
class FuzzedServer {
 public:
  FuzzedServer() : server_(Options()), stub_(server_.NewChannel()) {
    server_.AwaitReady();
    for (int i = 0; i < 20; ++i) pooled_ = Pooled();  // caches, threads
  }

  RawEnd Call(const char* path, const std::vector<grpc::ByteBuffer>& messages) {
    return RawCall(stub_, path, messages).Run();
  }

  void RequireGoodAnswer() { Require(Pooled() == pooled_, "a good request is answered as before"); }

 private:
  static InProcessServer::Options Options() {
    InProcessServer::Options options;
    options.flags.encode.max_response_bytes = 1 << 20;
    options.flags.encode.max_attention_weight_bytes = 1 << 19;
    options.flags.attention.max_bytes = kScratchBytes;
    options.flags.attention.max_operations = int64_t{1} << 28;
    return options;
  }

  std::string Pooled() {
    v1::EncodeResponse response;
    const grpc::Status status = CallEncode(server_.encoder(), HelloRequest(), response);
    Require(status.ok(), absl::StrCat("a good request is answered: ", status.error_message()));
    return response.pooled().data();
  }

  InProcessServer server_;
  grpc::GenericStub stub_;
  std::string pooled_;
};

std::vector<grpc::ByteBuffer> Messages(bool stream, const uint8_t* data, size_t size) {
  std::vector<grpc::ByteBuffer> messages;
  const auto add = [&](size_t begin, size_t end) {
    const grpc::Slice slice(data + begin, end - begin);
    messages.emplace_back(&slice, 1);
  };
  if (!stream) add(0, size);
  for (size_t at = 0; stream && at + 2 <= size;) {
    const size_t length = data[at] + size_t{256} * data[at + 1];
    const size_t end = std::min(size, at + 2 + length);
    add(at + 2, end);
    at = end;
  }
  return messages;
}

void RequireEnd(const FuzzedMethod& method, size_t messages, const RawEnd& end) {
  const grpc::StatusCode code = end.status.error_code();
  const std::string what =
      absl::StrCat(method.path, " ends with ", code, ": ", end.status.error_message());
  if (method.stream) {
    Require(end.status.ok() && end.answers == messages,
            absl::StrCat("each of ", messages, " messages is answered once: ", end.answers,
                         " answers, ", what));
  }
  for (const grpc::StatusCode bad : {grpc::StatusCode::CANCELLED, grpc::StatusCode::UNKNOWN,
                                     grpc::StatusCode::INTERNAL, grpc::StatusCode::DATA_LOSS}) {
    Require(code != bad, absl::StrCat("a status says what is wrong: ", what));
  }
}

void RequireMemory(const FuzzedMethod& method, size_t size, const RawEnd& end, int64_t growth) {
  const int64_t limit = (kHeldPerByte + kClientPerByte) * static_cast<int64_t>(size) + kHeldAlways +
                        kScratchBytes + kHeldPerAnswerByte * end.answer_bytes;
  Require(growth <= limit,
          absl::StrCat(method.path, " with ", size, " bytes, answered with ", end.answer_bytes,
                       ", takes ", growth, " bytes, at most ", limit));
}

}  // namespace

void CallWithBytes(std::span<const FuzzedMethod> methods, const uint8_t* data, size_t size) {
  static FuzzedServer& server = *new FuzzedServer;  // its threads run to the end of the process
  if (size == 0) return;
  const FuzzedMethod& method = methods[data[0] % methods.size()];
  HeapGrowth();
  RawEnd end;
  {
    const std::vector<grpc::ByteBuffer> messages = Messages(method.stream, data + 1, size - 1);
    end = server.Call(method.path, messages);
    RequireEnd(method, messages.size(), end);
  }
  RequireMemory(method, size, end, HeapGrowth());
  server.RequireGoodAnswer();
}

}  // namespace attendant
