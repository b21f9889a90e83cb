// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/token_trie.h"

#include <utility>

#include "absl/numeric/bits.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

constexpr size_t kFirstSize = 16;

// Of a table of so many slots, a power of two.
SlotHash HashOf(size_t size) { return SlotHash(absl::countr_zero(size)); }

}  // namespace

TokenTrie::TokenTrie()
    : edges_(kFirstSize), mask_(kFirstSize - 1), first_slot_(HashOf(kFirstSize)) {}

bool TokenTrie::Insert(absl::string_view key, int32_t id) {
  uint32_t node = kRoot;
  int32_t* id_there = &root_id_;
  const char* const end = key.data() + key.size();
  for (const char* position = key.data(); position < end;) {
    const uint64_t edge_key = EdgeKey(node, NextCharacter(position));
    size_t slot = first_slot_(edge_key);
    while (edges_[slot].key != edge_key && edges_[slot].to.node != kNoNode) {
      slot = (slot + 1) & mask_;
    }
    if (edges_[slot].to.node == kNoNode) {
      if (2 * size_t{num_nodes_} >= edges_.size()) Grow();
      slot = AddEdge({edge_key, {num_nodes_++, kNoId}});
    }
    node = edges_[slot].to.node;
    id_there = &edges_[slot].to.id;
  }
  if (*id_there != kNoId) return false;
  *id_there = id;
  return true;
}

TokenTrie::Place TokenTrie::Find(absl::string_view key) const {
  Place place = {kRoot, root_id_};
  const char* const end = key.data() + key.size();
  for (const char* position = key.data(); position < end && place.node != kNoNode;) {
    place = Step(place.node, NextCharacter(position));
  }
  return place;
}

TokenTrie::Match TokenTrie::FindLongest(uint32_t node, absl::string_view text) const {
  Match match;
  const char* const end = text.data() + text.size();
  for (const char* position = text.data(); position < end;) {
    const Place place = Step(node, NextCharacter(position));
    if (place.node == kNoNode) break;
    node = place.node;
    if (place.id != kNoId) match = {place.id, static_cast<size_t>(position - text.data())};
  }
  return match;
}

size_t TokenTrie::AddEdge(const Edge& edge) {
  size_t slot = first_slot_(edge.key);
  while (edges_[slot].to.node != kNoNode) slot = (slot + 1) & mask_;
  edges_[slot] = edge;
  return slot;
}

void TokenTrie::Grow() {
  const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(2 * edges_.size()));
  mask_ = edges_.size() - 1;
  first_slot_ = HashOf(edges_.size());
  for (const Edge& edge : old) {
    if (edge.to.node != kNoNode) AddEdge(edge);
  }
}

}  // namespace attendant
