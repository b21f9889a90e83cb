// SPDX-License-Identifier: Apache-2.0
#include "server/threads/threading.h"

#include <pthread.h>

#include <thread>
#include <utility>

#include "server/threads/steady_time.h"

namespace attendant {
namespace {

class SystemCondition final : public Threading::Condition {
 public:
  void Signal() override { condition_.Signal(); }
  void SignalAll() override { condition_.SignalAll(); }
  void WaitUntil(absl::Mutex& mutex, absl::Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    condition_.WaitUntil(mutex, deadline);
  }

 private:
  SteadyCondVar condition_;
};

class SystemThread final : public Threading::Thread {
 public:
  SystemThread(const std::string& name, absl::AnyInvocable<void()> body)
      : thread_([name = name.substr(0, 15), body = std::move(body)]() mutable {
          pthread_setname_np(pthread_self(), name.c_str());
          body();
        }) {}
  ~SystemThread() override { thread_.join(); }

 private:
  std::thread thread_;
};

class SystemThreading final : public Threading {
 public:
  absl::Time Now() override { return SteadyNow(); }
  std::unique_ptr<Condition> MakeCondition() override {
    return std::make_unique<SystemCondition>();
  }
  std::unique_ptr<Thread> Start(const std::string& name, absl::AnyInvocable<void()> body) override {
    return std::make_unique<SystemThread>(name, std::move(body));
  }
};

}  // namespace

Threading& Threading::System() {
  static SystemThreading system;
  return system;
}

}  // namespace attendant
