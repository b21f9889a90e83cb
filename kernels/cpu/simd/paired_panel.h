// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant::cpu {

// The head of a panel of 8-bit weights for an instruction that sums the products of two neighbours
// in 16 bits and saturates (vpmaddubsw). So that it never does, values along k have chosen
// neighbours: x is u8, so the weights of a pair that have the same sign may come to 128 together,
// in each of the panel's columns. Nearly all values find a neighbour within blocks of 16, which one
// shuffle of x arranges. Of two that do not, one stays, and the other moves behind the last block;
// beside both is a zero.
//
// At these offsets from the head lie
//   kHeadBytes      order [blocks, 16] u8: which of its block's values stands there; as many bytes
//                   as a multiple of 64
//   sources_offset  sources [extra_groups * 2] s32: which value stands there, behind the blocks, in
//                   every other place
//   weights_offset  weights [blocks * 4 + extra_groups, panel_columns] groups of 4 s8, zero where
//                   no value is
struct PairedPanel {
  static constexpr int64_t kHeadBytes = 64;
  static constexpr int64_t kBlockGroups = 4;  // a block is 16 values
  static constexpr int64_t kMaxExtraGroups = 64;
  static constexpr int kMaxPairSum = 128;  // 255 * 128 is below 2^15

  int64_t bytes = 0;  // from one panel to the next
  int64_t sources_offset = 0;
  int64_t weights_offset = 0;
  int64_t extra_groups = 0;
  // Else too many values found no neighbour: the weights of all are in their order, pairs of them
  // may saturate, and `order` means nothing.
  bool pairs_fit = false;
};
static_assert(sizeof(PairedPanel) <= PairedPanel::kHeadBytes);

}  // namespace attendant::cpu
