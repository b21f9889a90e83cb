// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/server/fuzzed_call.h"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/server/fuzzed_server.h"

namespace attendant {
namespace {

constexpr std::chrono::seconds kLongestCall{20};

struct RawEnd {
  grpc::Status status;
  size_t answers = 0;
  int64_t answer_bytes = 0;
};

// One call of messages as they are. Reads and writes at the same time: a stream that is not read
// takes no more messages.
class RawCall {
 public:
  RawCall(grpc::GenericStub& stub, const FuzzedMethod& method,
          const std::vector<grpc::ByteBuffer>& messages)
      : messages_(messages), call_(stub.PrepareCall(&context_, method.path, &queue_)) {
    if (*method.model != '\0') context_.AddMetadata("x-model", method.model);
  }

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
  Require(end.answers <= std::max<size_t>(messages, 1), what);
  if (method.stream && method.answers_each) {
    Require(end.status.ok() && end.answers == messages,
            absl::StrCat("each of ", messages, " messages is answered once: ", end.answers,
                         " answers, ", what));
  }
  for (const grpc::StatusCode bad : {grpc::StatusCode::CANCELLED, grpc::StatusCode::UNKNOWN,
                                     grpc::StatusCode::INTERNAL, grpc::StatusCode::DATA_LOSS}) {
    Require(code != bad, absl::StrCat("a status says what is wrong: ", what));
  }
}

}  // namespace

void CallWithBytes(std::span<const FuzzedMethod> methods, const uint8_t* data, size_t size) {
  FuzzedServer& server = FuzzedServer::Get();
  static grpc::GenericStub& stub = *new grpc::GenericStub(server.server().NewChannel());
  if (size == 0) return;
  const FuzzedMethod& method = methods[data[0] % methods.size()];
  FuzzedServer::BeginMemory();
  RawEnd end;
  {
    const std::vector<grpc::ByteBuffer> messages = Messages(method.stream, data + 1, size - 1);
    end = RawCall(stub, method, messages).Run();
    RequireEnd(method, messages.size(), end);
  }
  FuzzedServer::RequireMemory(method.path, size, end.answer_bytes);
  server.RequireGoodAnswer();
}

}  // namespace attendant
