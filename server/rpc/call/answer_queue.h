// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "server/requests/call_state.h"

namespace attendant {

// A request on a stream, and its answer.
template <typename Answer>
struct Exchange {
  grpc::ByteBuffer request;  // the handler takes it
  Answer answer;
  std::shared_ptr<CallState> state;
  int64_t bytes = 0;      // of the request and of the coming answer, then of the answer
  bool admitted = false;  // the size of its answer is known, or it is answered
  bool answered = false;
  absl::Status failure;  // ends the stream
};

// The exchanges of a stream, from the request to the answer that is written. Not thread-safe.
template <typename Answer>
class AnswerQueue {
 public:
  using Pointer = std::shared_ptr<Exchange<Answer>>;

  // `in_order`: answers are written in the order of the requests, and none after a failure. Else
  // as they come.
  explicit AnswerQueue(bool in_order) : in_order_(in_order) {}

  void Add(const Pointer& exchange) {
    bytes_ += exchange->bytes;
    unanswered_.insert(exchange);
    if (in_order_) order_.push_back(exchange);
  }
  void Grow(Exchange<Answer>& exchange, int64_t bytes) {
    exchange.bytes += bytes;
    bytes_ += bytes;
  }
  void Answered(Pointer exchange) {
    exchange->answered = true;
    unanswered_.erase(exchange);
    if (!in_order_) return Release(std::move(exchange));
    while (!order_.empty() && order_.front()->answered) {
      Release(std::move(order_.front()));
      order_.pop_front();
    }
  }

  // The answer to write next.
  bool ready() const { return !ready_.empty(); }
  Answer& front() { return ready_.front()->answer; }
  void Pop() {
    bytes_ -= ready_.front()->bytes;
    ready_.pop_front();
  }
  // Drops the answers that are ready, since their reader is gone.
  void DropReady() {
    while (ready()) Pop();
  }

  // The status of the request that failed first. Only in order.
  const absl::Status& failure() const { return failure_; }

  bool empty() const { return unanswered_.empty() && order_.empty() && ready_.empty(); }
  int64_t requests() const {
    return static_cast<int64_t>(std::max(unanswered_.size(), order_.size()) + ready_.size());
  }
  int64_t bytes() const { return bytes_; }
  std::vector<std::shared_ptr<CallState>> Unanswered() const {
    std::vector<std::shared_ptr<CallState>> states;
    for (const Pointer& exchange : unanswered_) states.push_back(exchange->state);
    return states;
  }

 private:
  void Release(Pointer exchange) {
    if (failure_.ok()) failure_ = exchange->failure;
    if (failure_.ok()) {
      ready_.push_back(std::move(exchange));
    } else {
      bytes_ -= exchange->bytes;
    }
  }

  const bool in_order_;
  absl::flat_hash_set<Pointer> unanswered_;
  std::deque<Pointer> order_;  // those before which not all are answered, and themselves
  std::deque<Pointer> ready_;
  absl::Status failure_;
  int64_t bytes_ = 0;  // of all of them
};

}  // namespace attendant
