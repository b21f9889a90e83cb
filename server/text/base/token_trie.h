// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/text/base/slot_hash.h"

namespace attendant {

// A map from strings to ids that is walked character by character, so that one pass over a text
// finds the longest key at a place. Its edges lie in one flat hash table, each with all that a step
// needs to know. Immutable once filled, then thread-safe.
class TokenTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNoNode = UINT32_MAX;
  static constexpr int32_t kNoId = -1;
  static constexpr size_t kMaxNodes = size_t{1} << 28;

  // A place in the trie, and the id of the key that ends there.
  struct Place {
    uint32_t node = kNoNode;  // kNoNode: no key begins so
    int32_t id = kNoId;
  };

  TokenTrie();

  // False, and nothing changes, when `key` has an id already. REQUIRES: id >= 0; valid UTF-8; the
  // bytes of all keys are fewer than kMaxNodes.
  bool Insert(absl::string_view key, int32_t id);

  // The place after a step from `node` with a character.
  Place Step(uint32_t node, char32_t character) const {
    const uint64_t key = EdgeKey(node, character);
    for (size_t slot = first_slot_(key);; slot = (slot + 1) & mask_) {
      const Edge& edge = edges_[slot];
      if (edge.key == key) return edge.to;
      if (edge.to.node == kNoNode) return {};
    }
  }

  // The place where `key` ends; kNoNode if no key begins with it. REQUIRES: valid UTF-8.
  Place Find(absl::string_view key) const;

  // The id of `key`, or kNoId. REQUIRES: valid UTF-8.
  int32_t FindId(absl::string_view key) const { return Find(key).id; }

  // The longest key, of one character at least, that `text` goes on with when the walk starts at
  // `node`. REQUIRES: valid UTF-8.
  struct Match {
    int32_t id = kNoId;
    size_t bytes = 0;
  };
  Match FindLongest(uint32_t node, absl::string_view text) const;

 private:
  struct Edge {
    uint64_t key = UINT64_MAX;
    Place to;  // kNoNode: the slot is free
  };

  static uint64_t EdgeKey(uint32_t node, char32_t character) {
    return uint64_t{node} << 21 | character;
  }
  size_t AddEdge(const Edge& edge);
  void Grow();

  std::vector<Edge> edges_;  // a power of two, at most half of it in use
  size_t mask_;              // edges_.size() - 1
  SlotHash first_slot_;
  uint32_t num_nodes_ = 1;
  int32_t root_id_ = kNoId;  // of the empty key
};

}  // namespace attendant
