// SPDX-License-Identifier: Apache-2.0
// Panels of paired weights hold every weight once, and pairs that fit 16 bits where they say so.
#include "kernels/cpu/matmul/paired_panels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "kernels/core/base/int_math.h"
#include "kernels/cpu/simd/paired_panel.h"

namespace attendant::cpu {
namespace {

constexpr int64_t kColumns = 24;  // of a panel, but where a test says otherwise

struct Weight {
  Weight(int64_t outputs, int64_t inputs, const std::function<int(int64_t, int64_t)>& value)
      : n(outputs), k(inputs) {
    for (int64_t i = 0; i < n * k; ++i) values.push_back(static_cast<int8_t>(value(i / k, i % k)));
  }
  int8_t at(int64_t row, int64_t i) const { return values[static_cast<size_t>(row * k + i)]; }

  int64_t n, k;
  std::vector<int8_t> values;
};

// As weights of a trained matrix are: the largest of a row is 127.
Weight BellShaped(int64_t n, int64_t k) {
  std::mt19937 random(static_cast<uint32_t>(n * 1000 + k));
  std::normal_distribution<float> draw;
  std::vector<float> row;
  float largest = 0;
  return {n, k, [&](int64_t, int64_t i) {
            if (i == 0) {
              row.clear();
              for (int64_t j = 0; j < k; ++j) row.push_back(draw(random));
              largest = 0;
              for (const float value : row) largest = std::max(largest, std::abs(value));
            }
            return static_cast<int>(std::lround(row[static_cast<size_t>(i)] / largest * 127));
          }};
}

class Packed {
 public:
  explicit Packed(const Weight& weight, int64_t columns = kColumns)
      : weight_(weight), columns_(columns), bytes_(PairedPanelBytes(weight.k, columns)) {
    storage_.resize(static_cast<size_t>(panels() * bytes_), std::byte{0x5a});
    PackPairedPanels({weight.values.data(), {weight.n, weight.k}}, columns, storage_.data());
  }

  int64_t panels() const { return CeilDivide(weight_.n, columns_); }
  const PairedPanel& panel(int64_t i) const {
    return *reinterpret_cast<const PairedPanel*>(storage_.data() + i * bytes_);
  }

  // Every weight stands once, beside one that leaves it room, and all else is zero.
  void Check(int64_t index) const {
    SCOPED_TRACE(testing::Message()
                 << "panel " << index << " of " << weight_.n << " x " << weight_.k);
    const PairedPanel& head = panel(index);
    ASSERT_EQ(head.bytes, bytes_);
    ASSERT_EQ(head.bytes % 64, 0);
    const int64_t groups = RoundUp(CeilDivide(weight_.k, 4), PairedPanel::kBlockGroups);
    ASSERT_LE(head.extra_groups, PairedPanel::kMaxExtraGroups);
    const int64_t all_groups = groups + head.extra_groups;
    ASSERT_GE(head.sources_offset, PairedPanel::kHeadBytes + RoundUp(groups * 4, 64));
    ASSERT_GE(head.weights_offset, head.sources_offset + head.extra_groups * 8);
    ASSERT_LE(head.weights_offset + all_groups * columns_ * 4, bytes_);
    const auto* const begin = reinterpret_cast<const std::byte*>(&head);
    const auto* const order = reinterpret_cast<const uint8_t*>(begin + PairedPanel::kHeadBytes);
    const auto* const sources = reinterpret_cast<const int32_t*>(begin + head.sources_offset);
    const auto* const weights = reinterpret_cast<const int8_t*>(begin + head.weights_offset);
    std::vector<int> found(static_cast<size_t>(weight_.k * columns_));
    for (int64_t position = 0; position < all_groups * 4; ++position) {
      const int64_t behind = position - groups * 4;
      int64_t source = position;
      if (behind >= 0) {
        source = sources[behind / 2] + behind % 2;
        ASSERT_LE(source, weight_.k) << "at " << position;
      } else if (head.pairs_fit) {
        source = position / 16 * 16 + order[position];
      }
      for (int64_t j = 0; j < columns_; ++j) {
        const auto value_at = [&](int64_t at) {
          return static_cast<int>(weights[(at / 4 * columns_ + j) * 4 + at % 4]);
        };
        const int value = value_at(position), other = value_at(position ^ 1);
        if (head.pairs_fit) {
          ASSERT_LE(255 * (std::max(value, 0) + std::max(other, 0)), 32767) << "at " << position;
          ASSERT_GE(255 * (std::min(value, 0) + std::min(other, 0)), -32768) << "at " << position;
        }
        if (source < weight_.k) {
          found[static_cast<size_t>(source * columns_ + j)] += value;
        } else {
          ASSERT_EQ(value, 0) << "at " << position;
        }
      }
    }
    for (int64_t i = 0; i < weight_.k * columns_; ++i) {
      const int64_t row = index * columns_ + i % columns_;
      const int expected = row < weight_.n ? weight_.at(row, i / columns_) : 0;
      ASSERT_EQ(found[static_cast<size_t>(i)], expected)
          << "value " << i / columns_ << ", column " << i % columns_;
    }
  }

 private:
  const Weight& weight_;
  int64_t columns_, bytes_;
  std::vector<std::byte> storage_;
};

TEST(PairedPanelsTest, EveryShape) {
  for (const int64_t columns : {24, 64}) {
    for (const int64_t n : {1, 24, 50, 129}) {
      for (const int64_t k : {1, 2, 15, 16, 17, 63, 64, 100, 384, 1540}) {
        const Weight weight = BellShaped(n, k);
        const Packed packed(weight, columns);
        for (int64_t i = 0; i < packed.panels(); ++i) packed.Check(i);
      }
    }
  }
}

TEST(PairedPanelsTest, NearlyAllTrainedWeightsFindANeighbour) {
  for (const auto& [columns, most] : {std::pair<int64_t, int64_t>{24, 2}, {64, 24}}) {
    const Weight weight = BellShaped(columns * 4, 384);
    const Packed packed(weight, columns);
    for (int64_t i = 0; i < packed.panels(); ++i) {
      EXPECT_TRUE(packed.panel(i).pairs_fit) << columns << " columns";
      EXPECT_LE(packed.panel(i).extra_groups, most) << columns << " columns";
    }
  }
}

// Neighbours in their own order would not fit; one of each sign does.
TEST(PairedPanelsTest, ChoosesNeighbours) {
  const Weight weight(kColumns, 16, [](int64_t, int64_t i) { return i < 8 ? 127 : -128; });
  const Packed packed(weight);
  packed.Check(0);
  EXPECT_TRUE(packed.panel(0).pairs_fit);
  EXPECT_EQ(packed.panel(0).extra_groups, 0);
}

// The most that two may come to, of either sign.
TEST(PairedPanelsTest, NeighboursMayFillTheirRoom) {
  for (const int sign : {-1, 1}) {
    for (const int room : {128, 129}) {
      const Weight weight(1, 16,
                          [&](int64_t, int64_t i) { return sign * (i % 2 ? 64 : room - 64); });
      const Packed packed(weight);
      packed.Check(0);
      // Of 65 and 64 only the smaller ones fit beside each other.
      EXPECT_EQ(packed.panel(0).extra_groups + (packed.panel(0).pairs_fit ? 0 : 1),
                room == 128 ? 0 : 1);
    }
  }
}

// Eight of a block's values have none beside them; they are as many as there is room for.
TEST(PairedPanelsTest, MovesWhatFindsNoNeighbour) {
  const Weight weight(kColumns, 384, [](int64_t, int64_t i) { return i / 16 == 3 ? 127 : 0; });
  const Packed packed(weight);
  packed.Check(0);
  EXPECT_TRUE(packed.panel(0).pairs_fit);
  EXPECT_EQ(packed.panel(0).extra_groups, 4);
}

TEST(PairedPanelsTest, KeepsTheOrderWhereTooManyFindNone) {
  const Weight weight(2 * kColumns, 384, [](int64_t row, int64_t i) {
    return row < kColumns && i < 32 ? -128 : static_cast<int>(i % 5);
  });
  const Packed packed(weight);
  packed.Check(0);
  packed.Check(1);
  EXPECT_FALSE(packed.panel(0).pairs_fit);
  EXPECT_EQ(packed.panel(0).extra_groups, 0);
  EXPECT_TRUE(packed.panel(1).pairs_fit) << "the other panel's weights are small";
}

// The last block's last value is the one too many.
TEST(PairedPanelsTest, LeavesNothingOfPairsThatItGivesUp) {
  const Weight weight(kColumns, 30, [](int64_t, int64_t i) { return i >= 16 && i < 27 ? 127 : 0; });
  const Packed packed(weight);
  EXPECT_FALSE(packed.panel(0).pairs_fit);
  packed.Check(0);
}

}  // namespace
}  // namespace attendant::cpu
