// SPDX-License-Identifier: Apache-2.0
#include "server/batching/service_order.h"

#include <iterator>
#include <limits>
#include <utility>

namespace attendant {

void ServiceOrder::Add(QueuedRequest& request) {
  const auto [turn, is_new] = turns_.try_emplace(request.client, last_turn_ + 1);
  Client& client = clients_[turn->second];
  if (is_new) {
    ++last_turn_;
    client.balance = quantum_;
  }
  request.place.turn = ++last_turn_;
  client.requests.emplace(request.place.turn, &request);
}

void ServiceOrder::Remove(QueuedRequest& request) {
  SetBegun(request, false);
  const auto turn = turns_.find(request.client);
  const auto client = clients_.find(turn->second);
  client->second.requests.erase(request.place.turn);
  if (!client->second.requests.empty()) return;
  clients_.erase(client);
  turns_.erase(turn);
}

void ServiceOrder::MoveToEnd(QueuedRequest& request) {
  SetBegun(request, false);
  Requests& requests = Of(request).requests;
  requests.erase(request.place.turn);
  request.place.turn = ++last_turn_;
  requests.emplace(request.place.turn, &request);
}

QueuedRequest* ServiceOrder::After(Position position) const {
  auto client = clients_.lower_bound(position.client);
  if (client == clients_.end()) return nullptr;
  if (client->first == position.client) {
    const auto next = client->second.requests.upper_bound(position.request);
    if (next != client->second.requests.end()) return next->second;
    if (++client == clients_.end()) return nullptr;
  }
  return client->second.requests.begin()->second;
}

ServiceOrder::Position ServiceOrder::PositionOf(const QueuedRequest& request) const {
  return {.client = turns_.at(request.client), .request = request.place.turn};
}

ServiceOrder::Position ServiceOrder::EndOfClient(const QueuedRequest& request) const {
  return {.client = turns_.at(request.client), .request = std::numeric_limits<uint64_t>::max()};
}

bool ServiceOrder::MayTake(const QueuedRequest& request) const {
  return Of(request).begun == &request || Of(request).balance > 0;
}

void ServiceOrder::Spend(const QueuedRequest& request, int64_t tokens) {
  Of(request).balance -= tokens;
}

void ServiceOrder::SetBegun(QueuedRequest& request, bool begun) {
  const QueuedRequest*& first = Of(request).begun;
  if (begun && first == nullptr) first = &request;
  if (!begun && first == &request) first = nullptr;
}

bool ServiceOrder::EndTurn(const QueuedRequest& request) {
  uint64_t& turn = turns_.at(request.client);
  const auto client = clients_.find(turn);
  if (clients_.size() > 1 && client->second.begun != nullptr) return false;
  client->second.balance += quantum_;
  if (std::next(client) == clients_.end()) return true;  // there is nobody to go behind
  auto node = clients_.extract(client);
  node.key() = turn = ++last_turn_;
  clients_.insert(std::move(node));
  return true;
}

}  // namespace attendant
