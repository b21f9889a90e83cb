// SPDX-License-Identifier: Apache-2.0
// Every kind of encoder through the C interface, in every format: right states, also between
// layers, right attention weights, and the same bits alone as in a batch.
#include <algorithm>
#include <tuple>

#include "tests/kernels/cuda/engine/engine_fixture.h"

namespace attendant::cuda_test {
namespace {

// Of states whose size is about 1, and of attention weights.
constexpr double kStates[] = {2e-5, 0.1, 1.5e-2, 0.8};
constexpr double kWeights[] = {1e-5, 3e-2, 4e-3, 0.2};

class VariantTest : public EngineTest,
                    public testing::WithParamInterface<std::tuple<size_t, int32_t>> {
 protected:
  static Variant variant() { return ListVariants()[std::get<0>(GetParam())]; }
  static size_t dtype() { return static_cast<size_t>(std::get<1>(GetParam())); }
};

void ExpectSame(const RunResults& together, const PackedSequences& batch, int64_t index,
                int64_t hidden, const RunResults& alone) {
  EXPECT_TRUE(std::equal(alone.last_hidden_state.begin(), alone.last_hidden_state.end(),
                         together.last_hidden_state.begin() + batch.start(index) * hidden));
  EXPECT_TRUE(std::equal(alone.pooled.begin(), alone.pooled.end(),
                         together.pooled.begin() + index * hidden));
}

TEST_P(VariantTest, MatchesPlainLoopsAloneAndTogether) {
  const Variant one = variant();
  const int64_t hidden = one.config.hidden;
  const RandomEncoder encoder(one.config, 1, one.parts);
  Make(encoder, static_cast<int32_t>(dtype()), 300);
  const std::vector<int64_t> lens = {1, 70, 5, 33, 130};
  const PackedSequences batch = RandomBatch(one.config, lens, 3, one.holes);
  const Inside inside{.attention_layers = {1, 2}, .attention_heads = {1}, .hidden_layers = {0, 2}};
  const RunResults results = Run(one.config, batch), looked = Run(one.config, batch, inside);
  const PlainResults plain = RunPlain(encoder, batch);
  EXPECT_LT(LargestDifference(results.last_hidden_state.data(), plain.states.back().data(),
                              batch.tokens() * hidden),
            kStates[dtype()]);
  EXPECT_EQ(looked.last_hidden_state, results.last_hidden_state);
  int64_t heads_begin = 0;
  for (int64_t s = 0; s < batch.batch(); ++s) {
    const int64_t len = batch.len(s);
    const auto index = static_cast<size_t>(s);
    for (size_t i = 0; i < 2; ++i) {
      const int64_t squares = len * len;
      EXPECT_LT(LargestDifference(
                    looked.hidden_states[index].data() + static_cast<int64_t>(i) * len * hidden,
                    plain.states[2 * i].data() + batch.start(s) * hidden, len * hidden),
                3 * kStates[dtype()])
          << "layer " << 2 * i;
      EXPECT_LT(LargestDifference(
                    looked.attention_weights[index].data() + static_cast<int64_t>(i) * squares,
                    plain.attention_weights[i + 1].data() + heads_begin + squares, squares),
                kWeights[dtype()])
          << "layer " << i + 1;
    }
    heads_begin += one.config.heads * len * len;
    ExpectSame(
        results, batch, s, hidden,
        Run(one.config, RandomBatch(one.config, {len}, 3 + static_cast<uint32_t>(s), one.holes)));
  }
  Release();
}

std::string NameOf(const testing::TestParamInfo<std::tuple<size_t, int32_t>>& info) {
  const char* const formats[] = {"f32", "bf16", "f16", "fp8"};
  std::string name = ListVariants()[std::get<0>(info.param)].name;
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name + "_" + formats[std::get<1>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         testing::Combine(testing::Range<size_t>(0, ListVariants().size()),
                                          testing::Range(ATTENDANT_CUDA_F32 + 0,
                                                         ATTENDANT_CUDA_FP8 + 1)),
                         NameOf);

}  // namespace
}  // namespace attendant::cuda_test
