// SPDX-License-Identifier: Apache-2.0
#include "server/requests/memory/client_waits.h"

#include <bit>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace attendant {

ClientWaits::Connection::Connection(ClientWaits& waits) : waits_(waits) {
  absl::MutexLock lock(&waits_.mutex_);
  Connections& empty = waits_.Class(0);
  place_ = empty.insert(empty.end(), this);
}

ClientWaits::Connection::~Connection() {
  absl::MutexLock lock(&waits_.mutex_);
  waits_.Class(bytes_).erase(place_);
}

int64_t ClientWaits::Connection::bytes() const {
  absl::MutexLock lock(&waits_.mutex_);
  return bytes_;
}

ClientWaits::Wait::Wait(Connection& connection, int64_t bytes, MakeEnder make_ender)
    : connection_(connection), bytes_(bytes), make_ender_(std::move(make_ender)) {}

void ClientWaits::Wait::Begin() {
  ClientWaits& waits = connection_.waits_;
  std::vector<Ender> gave_way;
  {
    absl::MutexLock lock(&waits.mutex_);
    if (waits_ || gave_way_) return;
    while (waits.bytes_ > 0 && waits.bytes_ + bytes_ > waits.room()) {
      gave_way.push_back(waits.TakeOldest());
    }
    waits.Add(*this);
  }
  for (Ender& end : gave_way) {
    if (waits.options_.on_gave_way) waits.options_.on_gave_way();
    end(waits.GaveWay());
  }
}

absl::Status ClientWaits::Wait::End() {
  ClientWaits& waits = connection_.waits_;
  absl::MutexLock lock(&waits.mutex_);
  if (waits_) waits.Remove(*this);
  return gave_way_ ? waits.GaveWay() : absl::OkStatus();
}

absl::Status ClientWaits::GaveWay() const {
  return absl::ResourceExhaustedError(absl::StrCat(
      "the call waited for its client, and newer calls needed its memory: the limit is ",
      options_.limit, " bytes (--max_waiting_call_bytes); try again later"));
}

void ClientWaits::Add(Wait& call) {
  std::list<Wait*>& calls = call.connection_.calls_;
  calls.splice(calls.end(), call.spare_);
  call.waits_ = true;
  Resize(call.connection_, call.bytes_);
}

void ClientWaits::Remove(Wait& call) {
  call.spare_.splice(call.spare_.end(), call.connection_.calls_, call.place_);
  call.waits_ = false;
  Resize(call.connection_, -call.bytes_);
}

ClientWaits::Ender ClientWaits::TakeOldest() {
  size_t largest = classes_.size() - 1;
  while (classes_[largest].empty()) --largest;
  Wait& oldest = *classes_[largest].front()->calls_.front();
  Remove(oldest);
  oldest.gave_way_ = true;
  return oldest.make_ender_();
}

void ClientWaits::Resize(Connection& connection, int64_t more) {
  Connections& from = Class(connection.bytes_);
  connection.bytes_ += more;
  bytes_ += more;
  Connections& to = Class(connection.bytes_);
  if (&from != &to) to.splice(to.end(), from, connection.place_);
}

ClientWaits::Connections& ClientWaits::Class(int64_t bytes) {
  return classes_[static_cast<size_t>(std::bit_width(static_cast<uint64_t>(bytes)))];
}

}  // namespace attendant
