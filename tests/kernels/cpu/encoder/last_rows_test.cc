// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/last_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/checkpoint.h"

namespace attendant::cpu {
namespace {

PackedBatch BatchOf(const std::vector<int64_t>& lens) {
  PackedBatch batch;
  for (const int64_t len : lens) {
    std::vector<int32_t> positions(static_cast<size_t>(len));
    std::iota(positions.begin(), positions.end(), 0);
    batch.Append(positions, positions, std::vector<int32_t>(positions.size(), 0));
  }
  return batch;
}

const std::vector<SequenceOutputs> kOneOfEach = {
    {.last_hidden_state = true}, {.pooling = Pooling::kCls},  {.pooling = Pooling::kNone},
    {.pooling = Pooling::kLast}, {.pooling = Pooling::kMean}, {.pooling = Pooling::kCls},
    {.pooling = Pooling::kMax}};

TEST(LastRowsTest, AreThoseThatOutputsAreMadeOf) {
  const PackedBatch batch = BatchOf({2, 3, 3, 4, 2, 1, 5});
  const OutputSpec spec{kOneOfEach};
  const LastRows all(batch, spec, 0, 7);
  EXPECT_EQ(all.count(), 2 + 1 + 0 + 1 + 2 + 1 + 5);
  EXPECT_EQ(all.of(1).begin, 0);
  EXPECT_EQ(all.of(1).end, 1);
  EXPECT_EQ(all.of(3).begin, 3);
  EXPECT_EQ(all.of(3).end, 4);
  EXPECT_EQ(LastRows(batch, spec, 1, 4).count(), 2);
}

TEST(LastRowsTest, AreAllOfASequenceWhoseLayersAreLookedAt) {
  const PackedBatch batch = BatchOf({3, 3, 3});
  const std::vector<SequenceOutputs> outputs(3, {.pooling = Pooling::kCls});
  const std::vector<int32_t> first = {0};
  std::vector<LayerOutputs> layers(3);
  layers[1].attention_layers = layers[1].attention_heads = first;
  layers[2].hidden_layers = first;
  const OutputSpec spec{outputs, layers};
  const LastRows rows(batch, spec, 0, 3);
  EXPECT_EQ(rows.of(0).size(), 1);
  EXPECT_EQ(rows.of(1).size(), 3);
  EXPECT_EQ(rows.of(2).size(), 3);
}

TEST(LastRowsTest, MoveToTheFrontAndBack) {
  const PackedBatch batch = BatchOf({9, 2, 3, 3, 4, 2, 1, 5});
  std::vector<SequenceOutputs> outputs = {{}};
  outputs.insert(outputs.end(), kOneOfEach.begin(), kOneOfEach.end());
  const OutputSpec spec{outputs};
  const LastRows rows(batch, spec, 1, 8);
  const std::vector<int16_t> kept = {0, 1, 2, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  std::vector<int16_t> values(20);
  std::iota(values.begin(), values.end(), int16_t{0});
  auto* const bytes = reinterpret_cast<std::byte*>(values.data());

  rows.MoveToFront(bytes, sizeof(int16_t));
  EXPECT_EQ(std::vector<int16_t>(values.begin(), values.begin() + rows.count()), kept);
  std::fill(values.begin() + rows.count(), values.end(), int16_t{-1});
  rows.MoveBack(bytes, sizeof(int16_t));
  for (const int16_t row : kept) EXPECT_EQ(values[static_cast<size_t>(row)], row);
}

// The others would only take time, which no test would notice.
TEST(LastRowsTest, OthersAreNotComputed) {
  constexpr EncoderConfig kConfig{.layers = 2,
                                  .heads = 2,
                                  .hidden = 32,
                                  .ffn = 64,
                                  .vocab = 101,
                                  .max_positions = 512,
                                  .segment_types = 2,
                                  .layer_norm_epsilon = 1e-12f};
  const auto backend = *MakeCpuBackend();
  const auto encoder = *backend->Prepare(kConfig, RandomWeights(kConfig, 7), DType::kF32);
  const auto session = *encoder->NewSession({.max_batch_tokens = 64, .max_batch_sequences = 4}, 1);
  const PackedBatch batch = BatchOf({20, 20});
  const std::vector<int32_t> inner = {1};  // what the last layer reads
  std::vector<float> input(size_t{40 * 32});
  std::vector<LayerOutputs> layers(2);
  for (size_t i = 0; i < 2; ++i) {
    layers[i].hidden_layers = inner;
    layers[i].hidden_states = input.data() + i * 20 * 32;
  }
  const std::vector<SequenceOutputs> sequences(2, {.pooling = Pooling::kCls});
  Outputs outputs;
  ASSERT_TRUE(session->Run(batch, {sequences, layers}, outputs).ok());
  ASSERT_TRUE(session->Run(batch, {sequences}, outputs).ok());
  for (int64_t row = 0; row < 40; ++row) {
    if (row == 1) continue;  // the second sequence's first row was moved there
    EXPECT_EQ(std::equal(outputs.last_hidden_state.row(row), outputs.last_hidden_state.row(row + 1),
                         input.begin() + row * 32),
              row % 20 != 0)
        << row;
  }
}

}  // namespace
}  // namespace attendant::cpu
