// SPDX-License-Identifier: Apache-2.0
#include "client/ordered_encoder.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

size_t SizeOf(const Sequence& sequence) {
  if (const auto* ids = std::get_if<TokenIds>(&sequence)) {
    return ids->token_ids.size() * sizeof(int32_t);
  }
  if (const auto* pair = std::get_if<TextPair>(&sequence)) {
    return pair->first.size() + pair->second.size();
  }
  return std::get<std::string>(sequence).size();
}

}  // namespace

struct OrderedEncoder::Call {
  EncodeRequest request;
  absl::StatusOr<EncodeResult> result = absl::UnknownError("");
  absl::Notification done;
};

OrderedEncoder::OrderedEncoder(Client& client, EncodeRequest prototype, const Limits& limits,
                               Sink sink)
    : client_(client),
      prototype_(std::move(prototype)),
      limits_(limits),
      sink_(std::move(sink)),
      next_(prototype_) {}

absl::Status AppendRows(absl::string_view name, const Tensor& rows, Tensor& all) {
  if (all.shape.empty()) all.shape = {0, rows.shape[1]};
  if (all.shape[1] != rows.shape[1]) {
    return absl::InternalError(absl::StrCat("the answers disagree: ", name, " has rows of ",
                                            all.shape[1], " and of ", rows.shape[1], " values"));
  }
  all.shape[0] += rows.shape[0];
  all.values.insert(all.values.end(), rows.values.begin(), rows.values.end());
  return absl::OkStatus();
}

absl::Status OrderedEncoder::Add(Sequence sequence) {
  const size_t bytes = SizeOf(sequence);
  if (!next_.sequences.empty() && (next_.sequences.size() >= limits_.max_sequences ||
                                   next_bytes_ + bytes > limits_.max_bytes)) {
    ATTENDANT_RETURN_IF_ERROR(Flush());
  }
  next_.sequences.push_back(std::move(sequence));
  next_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status OrderedEncoder::Finish() {
  if (!next_.sequences.empty()) {
    ATTENDANT_RETURN_IF_ERROR(Flush());
  }
  while (!calls_.empty()) {
    ATTENDANT_RETURN_IF_ERROR(TakeOldest());
  }
  return absl::OkStatus();
}

absl::Status OrderedEncoder::Flush() {
  if (calls_.size() >= limits_.max_concurrency) {
    ATTENDANT_RETURN_IF_ERROR(TakeOldest());
  }
  auto call = std::make_shared<Call>();
  call->request = std::exchange(next_, prototype_);
  next_bytes_ = 0;
  calls_.push_back(call);
  client_.EncodeAsync(
      call->request,
      [call](absl::StatusOr<EncodeResult> result) {
        call->result = std::move(result);
        call->done.Notify();
      },
      stop_.get_token());
  return absl::OkStatus();
}

absl::Status OrderedEncoder::TakeOldest() {
  const std::shared_ptr<Call> call = std::move(calls_.front());
  calls_.pop_front();
  call->done.WaitForNotification();
  absl::Status status = PassOn(*call);
  if (!status.ok()) stop_.request_stop();
  return status;
}

absl::Status OrderedEncoder::PassOn(const Call& call) {
  const int64_t first = taken_;
  taken_ += static_cast<int64_t>(call.request.sequences.size());
  if (call.result.ok()) return sink_(call.request, *call.result);
  const absl::Status& error = call.result.status();
  if (first == 0) return error;
  return absl::Status(error.code(), absl::StrCat(error.message(), " (in the request of inputs ",
                                                 first, " to ", taken_ - 1, ")"));
}

}  // namespace attendant::client
