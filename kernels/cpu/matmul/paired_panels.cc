// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul/paired_panels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>

#include "kernels/core/base/int_math.h"
#include "kernels/cpu/simd/paired_panel.h"

namespace attendant::cpu {
namespace {

constexpr int64_t kBlock = PairedPanel::kBlockGroups * 4;  // values

// Bit j of partners[i]: values i and j of a block may be neighbours.
using Partners = std::array<uint32_t, kBlock>;

// A block's values in pairs of partners, as many as a short search finds.
class BlockPairs {
 public:
  explicit BlockPairs(const Partners& partners) : partners_(partners) {
    Search((1u << kBlock) - 1, 0, 0);
  }

  // The values of a pair are at 2 i and 2 i + 1; behind the pairs stand those that are in none.
  const std::array<uint8_t, kBlock>& order() const { return best_; }
  int64_t paired() const { return kBlock - fewest_singles_; }

 private:
  // Nearly all blocks of 24 columns need 9; with 5000 steps hardly one finds a pair more.
  static constexpr int kMaxSteps = 100;

  // `left` are in neither of the `paired` values at the front of order_ and `singles` at its end.
  void Search(uint32_t left, int64_t paired, int64_t singles) {
    if (singles >= fewest_singles_ || ++steps_ > kMaxSteps) return;
    if (left == 0) {
      best_ = order_;
      fewest_singles_ = singles;
      return;
    }
    const int first = FewestPartners(left);
    left &= ~(1u << first);
    for (uint32_t others = partners_[At(first)] & left; others != 0; others &= others - 1) {
      const int second = std::countr_zero(others);
      order_[At(paired)] = static_cast<uint8_t>(first);
      order_[At(paired + 1)] = static_cast<uint8_t>(second);
      Search(left & ~(1u << second), paired + 2, singles);
    }
    order_[At(kBlock - 1 - singles)] = static_cast<uint8_t>(first);
    Search(left, paired, singles + 1);
  }

  int FewestPartners(uint32_t left) const {
    int found = 0, fewest = kBlock;
    for (uint32_t values = left; values != 0; values &= values - 1) {
      const int value = std::countr_zero(values);
      const int count = std::popcount(partners_[At(value)] & left);
      if (count < fewest) {
        found = value;
        fewest = count;
      }
    }
    return found;
  }

  static constexpr size_t At(int64_t i) { return static_cast<size_t>(i); }

  const Partners& partners_;
  std::array<uint8_t, kBlock> order_ = {}, best_ = {};
  int64_t fewest_singles_ = kBlock + 1;
  int steps_ = 0;
};

// Columns [begin, end) of a weight [n, k].
class PanelColumns {
 public:
  PanelColumns(TensorView<const int8_t, 2> weight, int64_t begin, int64_t end)
      : weight_(weight), begin_(begin), width_(end - begin) {}

  int64_t k() const { return weight_.dim(1); }
  int64_t width() const { return width_; }
  int8_t At(int64_t value, int64_t column) const { return weight_.row(begin_ + column)[value]; }

  // The partners in the block that begins at value `begin`.
  Partners PartnersIn(int64_t begin) const {
    const auto values = static_cast<size_t>(std::min(kBlock, k() - begin));
    std::array<Bytes, kBlock> unfit = {};  // beside each value
    for (int64_t column = 0; column < width_; ++column) {
      Bytes weights = {};
      std::memcpy(&weights, weight_.row(begin_ + column) + begin, values);
      // Two weights of one sign fit if they come to kMaxPairSum at most. Half of it is subtracted
      // from each, so that the sum stays in 8 bits: above 0 they do not fit.
      constexpr int8_t kHalf = PairedPanel::kMaxPairSum / 2;
      const Bytes positive = (weights > 0 ? weights : Bytes{}) - kHalf;
      const Bytes negative = -kHalf - (weights < 0 ? weights : Bytes{});
      const Bytes positive_room = -positive, negative_room = -negative;
      for (size_t i = 0; i < values; ++i)
        unfit[i] |= (positive > positive_room[i]) | (negative > negative_room[i]);
    }
    Partners partners = {};
    for (size_t i = 0; i < kBlock; ++i) {
      // Lanes are 0 or -1. No branches: they would be unpredictable.
      for (size_t j = 0; j < kBlock; ++j)
        partners[i] |= static_cast<uint32_t>(unfit[i][j] + 1) << j;
      partners[i] &= ~(1u << i);
    }
    return partners;
  }

 private:
  using Bytes = int8_t __attribute__((vector_size(kBlock)));

  const TensorView<const int8_t, 2> weight_;
  const int64_t begin_, width_;
};

// How much a panel holds, and where.
struct Layout {
  Layout(int64_t k, int64_t panel_columns)
      : columns(panel_columns),
        groups(RoundUp(CeilDivide(k, 4), PairedPanel::kBlockGroups)),
        max_extra_groups(
            std::min(groups * columns * columns / kExtraShare + 1, PairedPanel::kMaxExtraGroups)),
        sources_offset(PairedPanel::kHeadBytes + RoundUp(groups * 4, kAlignment)),
        weights_offset(RoundUp(sources_offset + max_extra_groups * 8, kAlignment)),
        bytes(RoundUp(weights_offset + (groups + max_extra_groups) * columns * 4, kAlignment)) {}

  static constexpr int64_t kAlignment = 64;
  // The more columns, the fewer neighbours: with 24 columns there is room for 8 values where 5 move
  // in MiniLM's worst panel, with 64 for 50 where 50 move.
  static constexpr int64_t kExtraShare = 1 << 14;

  int64_t columns, groups, max_extra_groups;
  int64_t sources_offset, weights_offset, bytes;
};

class PanelWriter {
 public:
  // `storage` is zero.
  PanelWriter(const PanelColumns& columns, const Layout& layout, std::byte* storage)
      : columns_(columns),
        layout_(layout),
        panel_(*new (storage) PairedPanel{.bytes = layout.bytes,
                                          .sources_offset = layout.sources_offset,
                                          .weights_offset = layout.weights_offset}),
        order_(reinterpret_cast<uint8_t*>(storage + PairedPanel::kHeadBytes)),
        sources_(reinterpret_cast<int32_t*>(storage + layout.sources_offset)),
        weights_(reinterpret_cast<int8_t*>(storage + layout.weights_offset)) {}

  void Write() {
    panel_.pairs_fit = WritePairs();
    if (!panel_.pairs_fit) WriteInOrder();
  }

 private:
  // False if more values than there is room for must move.
  bool WritePairs() {
    int64_t moved = 0;
    for (int64_t block = 0; block < layout_.groups * 4; block += kBlock) {
      const BlockPairs pairs(columns_.PartnersIn(block));
      for (int64_t i = 0; i < kBlock; ++i) {
        const uint8_t from = pairs.order()[static_cast<size_t>(i)];
        order_[block + i] = from;
        if (i < pairs.paired() || i % 2 == 0) {
          PutValue(block + from, block + i);
        } else {  // one of the weights: what lies beyond k is zero and fits beside any
          if (moved == layout_.max_extra_groups * 2) return false;
          sources_[moved] = static_cast<int32_t>(block + from);
          PutValue(block + from, layout_.groups * 4 + moved * 2);
          ++moved;
        }
      }
    }
    panel_.extra_groups = CeilDivide(moved, 2);
    return true;
  }

  void WriteInOrder() {
    std::fill_n(weights_, (layout_.groups + layout_.max_extra_groups) * layout_.columns * 4, 0);
    for (int64_t i = 0; i < columns_.k(); ++i) PutValue(i, i);
  }

  // Values beyond k stay zero.
  void PutValue(int64_t value, int64_t position) {
    if (value >= columns_.k()) return;
    int8_t* to = weights_ + position / 4 * layout_.columns * 4 + position % 4;
    for (int64_t j = 0; j < columns_.width(); ++j) to[j * 4] = columns_.At(value, j);
  }

  const PanelColumns& columns_;
  const Layout& layout_;
  PairedPanel& panel_;
  uint8_t* const order_;
  int32_t* const sources_;
  int8_t* const weights_;
};

}  // namespace

int64_t PairedPanelBytes(int64_t k, int64_t panel_columns) {
  return Layout(k, panel_columns).bytes;
}

void PackPairedPanels(TensorView<const int8_t, 2> weight, int64_t panel_columns, void* storage) {
  const int64_t n = weight.dim(0);
  const Layout layout(weight.dim(1), panel_columns);
  auto* to = static_cast<std::byte*>(storage);
  std::fill_n(to, CeilDivide(n, panel_columns) * layout.bytes, std::byte{0});
  for (int64_t begin = 0; begin < n; begin += panel_columns, to += layout.bytes) {
    const PanelColumns columns(weight, begin, std::min(begin + panel_columns, n));
    PanelWriter(columns, layout, to).Write();
  }
}

}  // namespace attendant::cpu
