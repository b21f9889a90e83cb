// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "tests/server/in_process_server.h"

namespace attendant {

// A call on a connection of its own, which its client neither uses nor ends.
class IdleCall {
 public:
  // `sends`: the server hears of the call with its first message.
  IdleCall(const InProcessServer& server, const std::string& method, bool sends)
      : stub_(server.NewChannel()), call_(stub_.PrepareCall(&context_, method, &queue_)) {
    call_->StartCall(nullptr);
    Await();
    if (sends) {
      const grpc::Slice empty;
      call_->WriteLast(grpc::ByteBuffer(&empty, 1), grpc::WriteOptions(), nullptr);
      Await();
    }
    call_->Finish(&status_, nullptr);
  }
  ~IdleCall() { Cancel(); }

  // Waits a moment for the server to end it.
  bool HasEnded() {
    void* tag = nullptr;
    bool ok = false;
    const auto soon = std::chrono::system_clock::now() + std::chrono::milliseconds(1);
    if (!ended_) ended_ = queue_.AsyncNext(&tag, &ok, soon) == grpc::CompletionQueue::GOT_EVENT;
    return ended_;
  }
  void Cancel() {
    context_.TryCancel();
    if (!ended_) Await();
    ended_ = true;
  }
  const grpc::Status& status() const { return status_; }

 private:
  void Await() {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue_.Next(&tag, &ok));
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::Status status_;
  bool ended_ = false;
};

}  // namespace attendant
