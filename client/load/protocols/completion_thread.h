// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/completion_queue.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace attendant::client {

// A completion queue of gRPC and the one thread that empties it. gRPC reads from the network on the
// thread that waits, so an answer and the request that follows it take no other thread.
class CompletionThread {
 public:
  // The tag of an operation.
  class Tag {
   public:
    // The operation has ended; `ok` as CompletionQueue::Next has it. Runs on the thread.
    virtual void Complete(bool ok) = 0;

   protected:
    ~Tag() = default;
  };

  CompletionThread() = default;
  // Joins the thread. REQUIRES: Start was called, and no operation is under way.
  ~CompletionThread();
  CompletionThread(const CompletionThread&) = delete;
  CompletionThread& operator=(const CompletionThread&) = delete;

  // Call once. The thread calls `idle`, unless it is null, when nothing is left to do, between at
  // most 64 operations, and at least ten times a second.
  void Start(std::function<void()> idle);

  // Every tag in it is a Tag.
  grpc::CompletionQueue* queue() { return &queue_; }

  // True if the caller runs on this thread.
  bool IsCurrent() const;

 private:
  void Run();
  grpc::CompletionQueue::NextStatus NextOrIdle(void** tag, bool* ok);

  grpc::CompletionQueue queue_;
  std::function<void()> idle_;
  int operations_ = 0;  // since `idle_` ran; of the thread
  std::thread thread_;
};

// The threads that `connections` connections need on this machine, at least one; not started. gRPC
// polls the connections of a process on one thread at a time, so more threads than needed wake each
// other.
std::vector<std::unique_ptr<CompletionThread>> MakeCompletionThreads(size_t connections);

}  // namespace attendant::client
