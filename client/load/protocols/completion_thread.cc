// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/completion_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace attendant::client {
namespace {

using WallTime = std::chrono::system_clock::time_point;

constexpr std::chrono::milliseconds kIdleTick(100);
constexpr int kMostOperations = 64;
constexpr size_t kProcessorsPerThread = 4;  // the server, or another program, needs some

thread_local const CompletionThread* current_thread = nullptr;

}  // namespace

CompletionThread::~CompletionThread() {
  queue_.Shutdown();
  thread_.join();
}

void CompletionThread::Start(std::function<void()> idle) {
  idle_ = std::move(idle);
  thread_ = std::thread([this] { Run(); });
}

bool CompletionThread::IsCurrent() const { return current_thread == this; }

void CompletionThread::Run() {
  current_thread = this;
  void* tag = nullptr;
  bool ok = false;
  while (true) {
    const auto next = NextOrIdle(&tag, &ok);
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    if (next == grpc::CompletionQueue::GOT_EVENT) static_cast<Tag*>(tag)->Complete(ok);
  }
}

grpc::CompletionQueue::NextStatus CompletionThread::NextOrIdle(void** tag, bool* ok) {
  if (idle_ == nullptr) {
    return queue_.Next(tag, ok) ? grpc::CompletionQueue::GOT_EVENT
                                : grpc::CompletionQueue::SHUTDOWN;
  }
  if (++operations_ <= kMostOperations) {
    const auto next = queue_.AsyncNext(tag, ok, WallTime());  // what is ready
    if (next != grpc::CompletionQueue::TIMEOUT) return next;
  }
  operations_ = 0;
  idle_();
  return queue_.AsyncNext(tag, ok, std::chrono::system_clock::now() + kIdleTick);
}

std::vector<std::unique_ptr<CompletionThread>> MakeCompletionThreads(size_t connections) {
  const size_t processors = std::thread::hardware_concurrency();
  const size_t count =
      std::clamp<size_t>(processors / kProcessorsPerThread, 1, std::max<size_t>(1, connections));
  std::vector<std::unique_ptr<CompletionThread>> threads;
  while (threads.size() < count) threads.push_back(std::make_unique<CompletionThread>());
  return threads;
}

}  // namespace attendant::client
