// SPDX-License-Identifier: Apache-2.0
// Tells ThreadSanitizer the order that the distribution's gRPC makes. Its core is built without the
// sanitizer and hands calls from thread to thread by atomics. The definitions here come before the
// shared library's: what happens before a thread starts an operation is seen by the thread that
// gets a completion. All calls share one order, so a race is overlooked where an unrelated call of
// gRPC lies between its two halves. Linked into the programs and tests of the tsan preset only.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpcpp/support/server_callback.h>
#include <sanitizer/tsan_interface.h>
#include <unistd.h>

#include <atomic>

namespace {

char order;

void BeforeStart() { __tsan_release(&order); }
void AfterCompletion() { __tsan_acquire(&order); }

template <typename Function>
Function* Next(Function*, const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) _exit(99);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

#define ATTENDANT_NEXT(function) Next(&function, #function)

extern "C" {

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static const auto next = ATTENDANT_NEXT(grpc_completion_queue_next);
  const grpc_event event = next(queue, deadline, reserved);
  AfterCompletion();
  return event;
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static const auto next = ATTENDANT_NEXT(grpc_completion_queue_pluck);
  const grpc_event event = next(queue, tag, deadline, reserved);
  AfterCompletion();
  return event;
}

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count, void* tag,
                                      void* reserved) {
  static const auto next = ATTENDANT_NEXT(grpc_call_start_batch);
  BeforeStart();
  return next(call, ops, count, tag, reserved);
}

grpc_call_error grpc_server_request_call(grpc_server* server, grpc_call** call,
                                         grpc_call_details* details, grpc_metadata_array* metadata,
                                         grpc_completion_queue* bound,
                                         grpc_completion_queue* notified, void* tag) {
  static const auto next = ATTENDANT_NEXT(grpc_server_request_call);
  BeforeStart();
  return next(server, call, details, metadata, bound, notified, tag);
}

grpc_call_error grpc_server_request_registered_call(grpc_server* server, void* method,
                                                    grpc_call** call, gpr_timespec* deadline,
                                                    grpc_metadata_array* metadata,
                                                    grpc_byte_buffer** payload,
                                                    grpc_completion_queue* bound,
                                                    grpc_completion_queue* notified, void* tag) {
  static const auto next = ATTENDANT_NEXT(grpc_server_request_registered_call);
  BeforeStart();
  return next(server, method, call, deadline, metadata, payload, bound, notified, tag);
}

grpc_call_error grpc_call_cancel(grpc_call* call, void* reserved) {
  static const auto next = ATTENDANT_NEXT(grpc_call_cancel);
  BeforeStart();
  return next(call, reserved);
}

void grpc_call_unref(grpc_call* call) {
  static const auto next = ATTENDANT_NEXT(grpc_call_unref);
  BeforeStart();
  next(call);
}

}  // extern "C"

// The last callback of a call and its OnDone, what starts a call and its OnCancel: gRPC calls both
// on a thread of its executor, whose queue is inside the library too.
namespace grpc::internal {
namespace {

void NextSchedule(ServerCallbackCall* call, bool inline_on_done) {
  static const auto next = Next<void(ServerCallbackCall*, bool)>(
      nullptr, "_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");
  next(call, inline_on_done);
}

void NextCancel(ServerCallbackCall* call, ServerReactor* reactor) {
  static const auto next = Next<void(ServerCallbackCall*, ServerReactor*)>(
      nullptr, "_ZN4grpc8internal18ServerCallbackCall12CallOnCancelEPNS0_13ServerReactorE");
  next(call, reactor);
}

// Goes to the executor in a reactor's place.
class CancelOnExecutor final : public ServerReactor {
 public:
  CancelOnExecutor(ServerCallbackCall* call, ServerReactor* reactor)
      : call_(call), reactor_(reactor) {
    __tsan_release(this);
  }
  void OnDone() override {}
  void OnCancel() override {
    __tsan_acquire(this);
    reactor_->OnCancel();
    __tsan_release(call_);  // for OnDone
    delete this;
  }

 private:
  ServerCallbackCall* const call_;
  ServerReactor* const reactor_;
};

// Goes to the executor in a call's place.
class OnExecutor final : public ServerCallbackCall {
 public:
  explicit OnExecutor(ServerCallbackCall* call) : call_(call) { __tsan_release(this); }

 private:
  ServerReactor* reactor() override { return nullptr; }
  void CallOnDone() override {
    __tsan_acquire(this);
    NextSchedule(call_, true);
    delete this;
  }

  ServerCallbackCall* const call_;
};

}  // namespace

void ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  // Threads of the library count down too, unseen.
  callbacks_outstanding_.load(std::memory_order_acquire);
  __tsan_acquire(this);
  if (inline_ondone) return NextSchedule(this, true);
  NextSchedule(new OnExecutor(this), false);
}

void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  on_cancel_conditions_remaining_.load(std::memory_order_acquire);
  if (reactor->InternalInlineable()) return NextCancel(this, reactor);
  NextCancel(this, new CancelOnExecutor(this, reactor));
}

}  // namespace grpc::internal
