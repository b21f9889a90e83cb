// SPDX-License-Identifier: Apache-2.0
// What must hold in every simulation.
#include <algorithm>
#include <set>
#include <stdexcept>

#include "kernels/core/packed_batch.h"
#include "server/retry/retry_hint.h"
#include "tests/server/batching/simulation/scenario.h"
#include "tests/server/batching/simulation/scenario_parts.h"

namespace attendant {

CostModel FittedCost() {
  std::vector<CostModel::Sample> samples;
  for (const int64_t tokens : {1, 4, 8, 16}) {
    samples.push_back({.shape = {.sequences = 1, .tokens = tokens, .squares = tokens * tokens},
                       .time = absl::Microseconds(20 + 20 * tokens)});
  }
  return CostModel::Fit(samples);
}

bool Scenario::Request::too_large() const {
  const int64_t longest = *std::max_element(lens.begin(), lens.end());
  return longest > life->options.max_batch_tokens || tokens() > life->options.max_queued_tokens;
}

bool Scenario::Request::finds_queue_full() const {
  return life->observer->tokens + tokens() > life->options.max_queued_tokens ||
         life->observer->requests >= life->options.max_queued_requests;
}

bool Scenario::Request::client_may_be_full(const std::vector<std::shared_ptr<Request>>& all) const {
  int64_t held_tokens = tokens();
  int64_t held_requests = 1;
  for (const std::shared_ptr<Request>& other : all) {
    if (other.get() == this || other->life != life || other->client != client) continue;
    if (other->id == 0 || other->answers > 0) continue;
    held_tokens += other->tokens();
    ++held_requests;
  }
  const int64_t free_tokens = life->options.max_queued_tokens - life->observer->tokens - tokens();
  const int64_t free_requests = life->options.max_queued_requests - life->observer->requests - 1;
  return held_tokens > 8 * free_tokens || held_requests > 8 * free_requests;
}

bool Scenario::Request::has_run(absl::StatusCode verdict) const {
  return std::any_of(runs.begin(), runs.end(),
                     [verdict](const Run& run) { return run.verdict == verdict; });
}

absl::Status Scenario::Worker::Run(const PackedBatch& batch, const OutputSpec& /*spec*/,
                                   Outputs& outputs) {
  SimulatedThreading& threading = scenario_.threading_;
  const absl::Time start = threading.Now();
  const std::vector<Request::Run*> runs = Begin(batch);
  BeginCompute();
  const absl::Duration usual = absl::Microseconds(20 + 20 * batch.tokens());
  const absl::Duration time = usual * static_cast<double>(3 + threading.Random(20)) / 10 +
                              (threading.OneIn(30) ? absl::Milliseconds(4) : absl::ZeroDuration());
  life_.batch_end = threading.Now() + time;
  threading.Sleep(time);
  EndCompute();
  const absl::Duration duration = threading.Now() - start;
  const bool stalled = duration > life_.options.stall_timeout + kSlack;
  if (stalled && life_.batcher != nullptr) {
    ++scenario_.events_["stall"];
    if (life_.observer->stalled == 0 || life_.told_stalled == 0) {
      scenario_.Fail("nobody saw that a batch took ", absl::FormatDuration(duration));
    }
  }
  CheckAbandoned(batch);
  const absl::Status verdict = ChooseVerdict();
  for (Request::Run* run : runs) {
    run->duration = duration;
    run->verdict = verdict.code();
    run->abandoned = *stop_;
  }
  if (absl::IsInternal(verdict) && threading.OneIn(2)) throw std::runtime_error("a kernel threw");
  if (verdict.ok()) Compute(batch, outputs);
  return verdict;
}

void Scenario::Worker::BeginCompute() {
  life_.busy[index_] = true;
  if (!life_.shares()) return;
  bool& computing = scenario_.computing_[index_];
  if (computing) scenario_.Fail("two batches compute on one slot");
  computing = true;
}

void Scenario::Worker::EndCompute() {
  life_.busy[index_] = false;
  if (life_.shares()) scenario_.computing_[index_] = false;
}

Scenario::Request& Scenario::Worker::RequestOf(const PackedBatch& batch, int64_t i) const {
  const int32_t token = batch.token_ids()[static_cast<size_t>(batch.seq_start(i))];
  return *scenario_.requests_[static_cast<size_t>(token / kMaxSequences)];
}

// CheckResults finds batches that were abandoned and awaited.
void Scenario::Worker::CheckAbandoned(const PackedBatch& batch) {
  bool awaited = false;
  for (int64_t i = 0; i < batch.batch(); ++i) {
    awaited |= scenario_.threading_.Now() <= RequestOf(batch, i).cancelled + kSlack;
  }
  if (!awaited && !*stop_) scenario_.Fail("a batch was computed though nobody waited for it");
  if (*stop_) ++scenario_.events_["abandoned batch"];
}

absl::Status Scenario::Worker::ChooseVerdict() {
  if (scenario_.threading_.OneIn(12)) return absl::InternalError("a kernel failed");
  if (!scenario_.threading_.OneIn(150)) return absl::OkStatus();
  lost_ = life_.busy[index_] = true;
  ++life_.lost;
  ++scenario_.events_["lost worker"];
  return absl::UnavailableError("the device is lost");
}

// Checks a batch as it starts, and notes it in its requests.
std::vector<Scenario::Request::Run*> Scenario::Worker::Begin(const PackedBatch& batch) {
  const absl::Time now = scenario_.threading_.Now();
  if (lost_) scenario_.Fail("a lost runner was called again");
  if (batch.tokens() > life_.options.max_batch_tokens ||
      batch.batch() > life_.options.max_batch_sequences) {
    scenario_.Fail("a batch of ", batch.batch(), " sequences and ", batch.tokens(),
                   " tokens is above its limits");
  }
  if (now > life_.drained + kSlack) scenario_.Fail("a batch started after the drain");
  ++scenario_.events_["batch"];
  std::vector<Request::Run*> runs;
  for (int64_t i = 0; i < batch.batch(); ++i) {
    Request& request = RequestOf(batch, i);
    const int32_t token = batch.token_ids()[static_cast<size_t>(batch.seq_start(i))];
    const auto sequence = static_cast<size_t>(token % kMaxSequences);
    Request::Run& run = request.runs[sequence];
    if (run.times++ > 0) scenario_.Fail("a sequence of request ", request.index, " ran twice");
    if (life_.workers == 1 && sequence != request.next_run++) {
      scenario_.Fail("sequence ", sequence, " of request ", request.index, " is out of its order");
    }
    if (batch.len(i) != request.lens[sequence]) scenario_.Fail("a sequence has changed its length");
    if (now > request.cancelled + kSlack) {
      scenario_.Fail("request ", request.index, " entered a batch after it was cancelled");
    }
    if (now > request.deadline + kSlack) {
      scenario_.Fail("request ", request.index, " entered a batch after its deadline");
    }
    run.start = now;
    run.batch = scenario_.events_["batch"];
    runs.push_back(&run);
  }
  return runs;
}

// pooled = (sum of the token ids, len)
void Scenario::Worker::Compute(const PackedBatch& batch, Outputs& outputs) {
  pooled_.clear();
  for (int64_t i = 0; i < batch.batch(); ++i) {
    float sum = 0;
    for (int64_t t = batch.seq_start(i); t < batch.seq_start(i + 1); ++t) {
      sum += static_cast<float>(batch.token_ids()[static_cast<size_t>(t)]);
    }
    pooled_.push_back(sum);
    pooled_.push_back(static_cast<float>(batch.len(i)));
  }
  outputs.pooled = {pooled_.data(), {batch.batch(), 2}};
}

// All threads wait: with nothing to wait for, a worker would have taken what is queued.
void Scenario::CheckIdle() {
  for (const std::shared_ptr<Life>& life : lives_) {
    if (life->batcher == nullptr || life->observer->requests == 0) continue;
    const bool patient = life->options.max_queue_delay > absl::ZeroDuration() && !life->stopping;
    for (size_t i = 0; i < static_cast<size_t>(life->workers); ++i) {
      const bool can_compute = !life->busy[i] && !(life->shares() && computing_[i]);
      if (patient || !can_compute) continue;
      Fail("worker ", i, " is idle beside ", life->observer->requests, " queued requests");
    }
  }
}

void Scenario::CheckAnswer(Request& request, const absl::StatusOr<FinishedWork>& finished) {
  ++request.answers;
  request.code = finished.status().code();
  ++events_[absl::StatusCodeToString(request.code)];
  Trace("answer to ", request.index, ": ", absl::StatusCodeToString(request.code));
  if (request.answers > 1) Fail("request ", request.index, " was answered twice");
  Life& life = *request.life;
  if (posted_ <= life.drained) life.last_posted = std::max(life.last_posted, posted_);
  if (posted_ > life.drained + kSlack && request.arrival < life.drained) {
    Fail("request ", request.index, " was answered after the drain");
  }
  if (finished.ok()) {
    CheckResults(request, *finished);
  } else {
    CheckError(request, finished.status());
  }
}

void Scenario::CheckResults(const Request& request, const FinishedWork& finished) {
  const std::vector<SequenceResult>& results = std::get<EncodeWork>(finished.work).results;
  if (request.too_large()) Fail("request ", request.index, " is too large and was served");
  if (posted_ > request.cancelled + kSlack) Fail("an answer came after the cancellation");
  // The end of a batcher waits for the batches that run, and for nothing else.
  const bool ending = request.life->batcher == nullptr;
  if (!ending && posted_ > request.deadline + kSlack) Fail("an answer came after the deadline");
  std::map<int64_t, absl::Duration> batches;
  absl::Time last;
  for (size_t i = 0; i < request.runs.size(); ++i) {
    const Request::Run& run = request.runs[i];
    batches[run.batch] = run.duration;
    last = std::max(last, run.start);
    const float sum = static_cast<float>(TokenOf(request.index, i) * request.lens[i]);
    const std::vector<float> expected = {sum, static_cast<float>(request.lens[i])};
    if (run.abandoned) Fail("request ", request.index, " was answered from an abandoned batch");
    if (run.verdict != absl::StatusCode::kOk) Fail("OK, though a sequence did not run well");
    if (results.size() != request.runs.size() || results[i].pooled != expected) {
      return Fail("request ", request.index, " got another's result for sequence ", i);
    }
  }
  absl::Duration compute;
  for (const auto& [batch, duration] : batches) compute += duration;
  if (batches.size() > 1) ++events_["request in several batches"];
  if (absl::AbsDuration(finished.compute - compute) > kSlack) {
    Fail("compute is ", absl::FormatDuration(finished.compute), ", the batches took ",
         absl::FormatDuration(compute));
  }
  if (absl::AbsDuration(finished.queue - (last - request.arrival)) > kSlack) {
    Fail("queue is ", absl::FormatDuration(finished.queue), ", the last batch began after ",
         absl::FormatDuration(last - request.arrival));
  }
}

void Scenario::CheckError(const Request& request, const absl::Status& status) {
  const Life& life = *request.life;
  const auto unless = [&](bool right) {
    if (!right) Fail("request ", request.index, " should not get ", status.ToString());
  };
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
      return unless(request.cancelled <= posted_ &&
                    !EndsByDeadline(request.deadline, request.cancelled));
    case absl::StatusCode::kDeadlineExceeded: {
      const bool at_once = posted_ <= request.arrival + kSlack;
      const bool on_time = request.deadline <= posted_ && posted_ <= request.deadline + kSlack;
      const bool cancelled =
          request.cancelled <= posted_ && EndsByDeadline(request.deadline, posted_);
      // Refused on arrival, or left out of a batch under overload.
      const bool infeasible = posted_ < request.deadline && life.options.cost.fitted();
      if (infeasible) ++events_[at_once ? "infeasible" : "left out"];
      return unless(on_time || cancelled || infeasible ||
                    (at_once && request.deadline <= request.arrival));
    }
    case absl::StatusCode::kUnavailable:
      return unless(life.stopping || life.lost == life.workers || request.has_run(status.code()));
    case absl::StatusCode::kInvalidArgument:
      return unless(request.too_large());
    case absl::StatusCode::kInternal:
      return unless(request.has_run(status.code()));
    case absl::StatusCode::kResourceExhausted:
      return unless((request.queue_was_full || request.client_was_full) &&
                    RetryAfter(status).has_value());
    default:
      return unless(false);
  }
}

void Scenario::CheckAdmission(const Request& request) {
  if (!request.queue_was_full || request.id == 0) return;
  // Room that expired requests gave up.
  const bool expired =
      std::any_of(requests_.begin(), requests_.end(), [&](const std::shared_ptr<Request>& other) {
        return other->life == request.life && other->deadline <= request.arrival;
      });
  if (!expired) Fail("request ", request.index, " was admitted to a full queue");
}

void Scenario::CheckEnd() {
  if (!budget_.Acquire(kBudget).ok()) Fail("the budget is not whole at the end");
  std::map<const Life*, RejectCounts> rejected;
  for (const std::shared_ptr<Request>& request : requests_) {
    if (request->answers != 1) {
      Fail("request ", request->index, " got ", request->answers, " answers");
    }
    const auto count = [&](absl::StatusCode code, RejectReason reason) {
      if (request->code == code) ++rejected[request->life.get()][static_cast<size_t>(reason)];
    };
    count(absl::StatusCode::kCancelled, RejectReason::kCancelled);
    count(absl::StatusCode::kResourceExhausted, RejectReason::kQueueFull);
    count(absl::StatusCode::kInvalidArgument, RejectReason::kTooLarge);
  }
  for (const std::shared_ptr<Life>& life : lives_) {
    const Observer& observer = *life->observer;
    if (observer.tokens != 0 || observer.requests != 0) Fail("the queue is not empty at the end");
    for (const RejectReason reason :
         {RejectReason::kCancelled, RejectReason::kQueueFull, RejectReason::kTooLarge}) {
      const auto i = static_cast<size_t>(reason);
      if (observer.rejected[i] != rejected[life.get()][i]) {
        Fail(RejectReasonName(reason), " was counted ", observer.rejected[i], " times, not ",
             rejected[life.get()][i]);
      }
    }
    if (life->drained < absl::InfiniteFuture() &&
        life->drained > std::max(life->last_posted, life->drain_began) + kSlack &&
        life->drained >= life->drain_deadline &&
        life->drain_deadline > life->drain_began + 2 * kSlack) {
      Fail("a drain waited though all was answered");
    }
    if (life->told_lost != (life->lost == life->workers ? 1 : 0)) {
      Fail("the loss of the device was told ", life->told_lost, " times");
    }
  }
}

}  // namespace attendant
