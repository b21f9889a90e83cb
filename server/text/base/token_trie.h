// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant {

// A map from byte strings to ids that is walked byte by byte, so that one pass over a text finds
// the longest key at a place. Its edges lie in one flat hash table:
//
//   edge   node * 256 + byte (36 bits), child (28 bits)
//
// Immutable once filled, then thread-safe.
class TokenTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNoNode = UINT32_MAX;
  static constexpr int32_t kNoId = -1;
  static constexpr size_t kMaxNodes = size_t{1} << 28;

  TokenTrie();

  // False, and nothing changes, when `key` has an id already. REQUIRES: id >= 0; the bytes of all
  // keys are fewer than kMaxNodes.
  bool Insert(absl::string_view key, int32_t id);

  // kNoNode when no key goes on with `byte`.
  uint32_t Step(uint32_t node, char byte) const {
    const uint64_t key = EdgeKey(node, byte);
    for (size_t slot = FirstSlot(key);; slot = (slot + 1) & (edges_.size() - 1)) {
      const uint64_t edge = edges_[slot];
      if (edge == 0) return kNoNode;
      if (edge >> kChildBits == key) return static_cast<uint32_t>(edge & (kMaxNodes - 1));
    }
  }

  // The id of the key that ends at `node`, or kNoId.
  int32_t id(uint32_t node) const { return ids_[node]; }

  // The node where `key` ends, or kNoNode when no key starts with it.
  uint32_t Find(absl::string_view key) const;

  // The id of `key`, or kNoId.
  int32_t FindId(absl::string_view key) const {
    const uint32_t node = Find(key);
    return node == kNoNode ? kNoId : ids_[node];
  }

  // The longest key, of one byte at least, that `text` goes on with when the walk starts at `node`.
  struct Match {
    int32_t id = kNoId;
    size_t bytes = 0;
  };
  Match FindLongest(uint32_t node, absl::string_view text) const;

 private:
  static constexpr int kChildBits = 28;

  static uint64_t EdgeKey(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }
  size_t FirstSlot(uint64_t key) const {
    return static_cast<size_t>(key * 0x9E3779B97F4A7C15u >> shift_);  // Fibonacci hashing
  }
  void AddEdge(uint64_t edge);
  void Grow();

  std::vector<uint64_t> edges_;  // a power of two, at most half of it in use; 0 is a free slot
  int shift_;                    // 64 - log2(edges_.size())
  std::vector<int32_t> ids_;     // [nodes]
};

}  // namespace attendant
