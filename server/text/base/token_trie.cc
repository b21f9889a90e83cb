// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/token_trie.h"

#include <utility>

namespace attendant {
namespace {

constexpr int kFirstSizeBits = 4;

}  // namespace

TokenTrie::TokenTrie()
    : edges_(size_t{1} << kFirstSizeBits), shift_(64 - kFirstSizeBits), ids_{kNoId} {}

bool TokenTrie::Insert(absl::string_view key, int32_t id) {
  uint32_t node = kRoot;
  for (const char byte : key) {
    uint32_t child = Step(node, byte);
    if (child == kNoNode) {
      child = static_cast<uint32_t>(ids_.size());
      ids_.push_back(kNoId);
      if (2 * ids_.size() > edges_.size()) Grow();
      AddEdge(EdgeKey(node, byte) << kChildBits | child);
    }
    node = child;
  }
  if (ids_[node] != kNoId) return false;
  ids_[node] = id;
  return true;
}

uint32_t TokenTrie::Find(absl::string_view key) const {
  uint32_t node = kRoot;
  for (const char byte : key) {
    node = Step(node, byte);
    if (node == kNoNode) break;
  }
  return node;
}

TokenTrie::Match TokenTrie::FindLongest(uint32_t node, absl::string_view text) const {
  Match match;
  for (size_t i = 0; i < text.size(); ++i) {
    node = Step(node, text[i]);
    if (node == kNoNode) break;
    if (ids_[node] != kNoId) match = {ids_[node], i + 1};
  }
  return match;
}

void TokenTrie::AddEdge(uint64_t edge) {
  size_t slot = FirstSlot(edge >> kChildBits);
  while (edges_[slot] != 0) slot = (slot + 1) & (edges_.size() - 1);
  edges_[slot] = edge;
}

void TokenTrie::Grow() {
  const std::vector<uint64_t> old = std::exchange(edges_, std::vector<uint64_t>(2 * edges_.size()));
  --shift_;
  for (const uint64_t edge : old) {
    if (edge != 0) AddEdge(edge);
  }
}

}  // namespace attendant
