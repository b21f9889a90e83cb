// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/access/call_gate.h"
#include "server/batching/request.h"
#include "server/metrics/model_metrics.h"
#include "server/metrics/server_metrics.h"
#include "server/models/encoder_model.h"
#include "server/models/registry/model_registry.h"
#include "server/models/servable_model.h"
#include "server/requests/call_state.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/requests/model_waits.h"
#include "server/requests/request_message.h"
#include "server/threads/executor.h"
#include "server/threads/steady_time.h"
#include "server/tracing/traced_batch.h"

namespace attendant {

// INVALID_ARGUMENT for a priority outside of -100 to 100.
absl::Status CheckPriority(int priority);

// The dependencies of the requests of all protocols. They outlive all requests.
struct RequestDependencies {
  ModelRegistry& models;
  ServerMetrics& metrics;
  MemoryBudgets& budgets;
  CallGate& gate;
  ModelWaits& waits;        // outlive `models`
  Executor large_requests;  // decodes them
  Executor large_answers;   // builds them
  // Decodes the others, for a transport without threads for that. Null: there is none.
  Executor small_requests = nullptr;
};

// One request as its transport hands it over.
struct RequestCall {
  Method method = Method::kEncode;
  std::unique_ptr<RequestMessage> message;  // until the request is submitted
  // The model's name in the message; empty before it is scanned. Metrics count the request under
  // this name, if such a model exists.
  std::string model = {};
  absl::Time arrival = SteadyNow();              // of the whole message
  absl::Time deadline = absl::InfiniteFuture();  // of the steady clock, as the arrival
  std::shared_ptr<CallState> state;              // may hold memory of the message already
  // Writes the complete response message in the form that its client gets. Returns the bytes of
  // that. Empty: the client gets the message.
  absl::AnyInvocable<int64_t()> write = nullptr;
  // Called exactly once, after the answer is complete or the request has failed.
  absl::AnyInvocable<void(const absl::Status&)> done;
};

// The times of the phases of a request that are over.
struct RequestTimes {
  absl::Time arrival;
  absl::Duration decode;  // find the model, read the message, tokenize, check
  absl::Duration queue, compute, serialize;
  absl::Duration submitted, answering;  // since arrival: when decode ended and serialize began

  absl::Duration total() const { return SteadyNow() - arrival; }
};

// The tokens and sequences of an answered request.
struct RequestTokens {
  int64_t sequences = 0;
  int64_t valid = 0;
  int64_t padding = 0;
};

// The way of every request, whatever its protocol and whatever it computes:
//
//   1  account for the message's bytes          6  check the deadline, Prepare
//   2  go to the executor for large requests    7  free the message, submit
//      if it is one                             8  wait for the batcher
//   3  stop if the client has cancelled         9  go to the executor for large answers
//   4  scan the message, account for what          if it has one; Answer, unless the
//      parsing takes, parse                        deadline has passed
//   5  wait for a model that was unloaded      10  count, log, call done
//      because it was idle, at most until
//      the deadline; Decode
//
// A small message may ask for much work: then the request goes to that executor before 4 or 6. An
// error ends the request at 10. Derived classes define Decode, Prepare, Answer and CountTokens.
// EncodeRun (in encode_run.h) defines them for encoders, and leaves to a protocol the translation
// of its messages. One thread at a time works on a run.
class RequestRun {
 public:
  virtual ~RequestRun() = default;
  RequestRun(const RequestRun&) = delete;
  RequestRun& operator=(const RequestRun&) = delete;

  // Takes `run` to its end, and frees it. Calls `done` in here, on the executor for large requests
  // or that for large answers, or on the batcher's executor.
  static void Start(std::unique_ptr<RequestRun> run);

 protected:
  RequestRun(const RequestDependencies& dependencies, RequestCall call)
      : dependencies_(dependencies), call_(std::move(call)) {
    times_.arrival = call_.arrival;
  }

  // The model's own name, for a protocol in which clients know it by others.
  virtual std::string ModelName(const std::string& name) const { return name; }
  // The model's version in the message; empty: none. Called once the message is parsed.
  virtual absl::string_view ModelVersion() const { return ""; }
  // The time that the message gives the request. Called once the message is parsed.
  virtual absl::Duration Timeout() const { return absl::InfiniteDuration(); }
  // Finds the model, then reads the request message. Keeps nothing of the message beyond Prepare.
  // Called again when it was UNAVAILABLE because the model had become idle.
  virtual absl::StatusOr<std::shared_ptr<ServableModel>> Decode() = 0;
  // The bytes that Prepare works on. Called once after Decode.
  virtual int64_t PrepareBytes() const { return request_bytes_; }
  // Checks the request, acquires the answer's memory (AcquireResponse), and returns the work for
  // the model's batcher, without deadline and done. A request without sequences, all of them
  // masked, takes the same way: its result is empty.
  virtual absl::StatusOr<WorkRequest> Prepare() = 0;
  // Fills the response message from the results in `work`, which Prepare made.
  virtual void Answer(Work work) = 0;
  // The size of the response message. Called after Answer, where the call does not write it itself.
  virtual int64_t AnswerBytes() const { return 0; }
  // The tokens of an answered request. Counts each of its sequences in `metrics`.
  virtual RequestTokens CountTokens(ModelMetrics& metrics) const = 0;
  // A hook for the statistics of a protocol. Called once, right before done.
  virtual void OnEnd(const absl::Status& /*status*/) {}

  // RESOURCE_EXHAUSTED, counted as a rejection, when the memory does not fit now: see ByteBudget.
  // The request's is kept until it is answered, that of the answer until it is written.
  absl::Status AcquireRequest(int64_t bytes);
  absl::Status AcquireResponse(int64_t bytes);
  // Memory that a request may keep longer than its call lasts.
  absl::StatusOr<ByteBudget::Share> AcquireOwn(int64_t bytes);

  const RequestDependencies& dependencies() const { return dependencies_; }
  const RequestCall& call() const { return call_; }
  const RequestMessage& message() const { return *call_.message; }  // in Decode and Prepare
  const RequestTimes& times() const { return times_; }

 private:
  using Step = void (*)(std::unique_ptr<RequestRun> run);
  // Takes the step, which works on `bytes`: here or, if they are many, on the executor for large
  // requests.
  static void Take(std::unique_ptr<RequestRun> run, int64_t bytes, Step step);
  static void Read(std::unique_ptr<RequestRun> run);           // 3, 4
  static void AwaitModel(std::unique_ptr<RequestRun> run);     // 5, until it is loaded
  void EndEarly(const absl::Status& status);                   // cancelled, or 5 when it is not
  static void DecodeMessage(std::unique_ptr<RequestRun> run);  // 5
  static void Submit(std::unique_ptr<RequestRun> run);         // 6, 7
  bool Cancelled();                                            // then the run is ended
  bool ModelNeedsLoad() const;
  absl::Status ReadMessage();
  void TakeNames();  // the model's and the request's, as far as the message is read
  absl::StatusOr<WorkRequest> MakeRequest();
  absl::Status PastDeadline(absl::string_view message) const;  // and counts it
  static void Complete(std::unique_ptr<RequestRun> run,
                       absl::StatusOr<FinishedWork> finished);  // 9
  void BuildAnswer(FinishedWork finished);                      // 9
  void End(const absl::Status& status);
  RequestTokens Count(const absl::Status& status) const;
  void Report(const absl::Status& status, const RequestTokens& tokens) const;
  absl::Status CountRejected(const absl::Status& status) const;  // unless OK; returns it
  void CountRejected(absl::string_view reason) const;

  const RequestDependencies& dependencies_;
  RequestCall call_;
  RequestTimes times_;
  bool is_large_ = false;  // its steps are large_requests' from now on
  int64_t request_bytes_ = 0;
  int64_t answer_bytes_ = 0;              // once it is answered
  uint64_t span_ = 0;                     // of its trace; 0: none is sent
  std::vector<TracedBatch> batches_;      // of a request with a span
  std::shared_ptr<ServableModel> model_;  // set by Decode, shared in until the end
};

}  // namespace attendant
