// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/core/base/regular_file.h"
#include "tests/kernels/checkpoints/families/family_support.h"
#include "tests/support/checkpoint.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

TEST(AlbertTest, IsBertWithAProjectionAndOneSetOfWeights) {
  const auto config = Read(Bert("albert"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.embedding_width, 128);
  EXPECT_EQ(config->encoder.activation, Activation::kGeluTanh);
  EXPECT_EQ(config->encoder.norm_place, NormPlace::kPost);
  EXPECT_EQ(config->layer_groups, 1);
  const auto other = Read(Bert("albert", R"(, "embedding_size": 48, "num_hidden_groups": 3,
      "hidden_act": "gelu", "inner_group_num": 1)"));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->encoder.embedding_width, 48) << "projected, although it is the hidden size";
  EXPECT_EQ(other->encoder.activation, Activation::kGeluErf);
  EXPECT_EQ(other->layer_groups, 3);
}

TEST(AlbertTest, OtherGroupsAreRefused) {
  ExpectUnimplemented(Bert("albert", R"(, "inner_group_num": 2)"), "`inner_group_num` is 2");
  for (const char* groups : {"0", "-1", "4"}) {
    const absl::Status status =
        Read(Bert("albert", absl::StrCat(R"(, "num_hidden_groups": )", groups))).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                testing::HasSubstr(absl::StrCat("num_hidden_groups is ", groups)));
  }
}

// A copy of the tiny checkpoint whose config has other numbers.
absl::StatusOr<Checkpoint> LoadWith(int layers, int groups) {
  const std::string golden = GoldenDirectory("tiny_albert");
  TempDirectory directory;
  std::filesystem::copy(golden + "/model.safetensors", directory / "model.safetensors");
  WriteFile(directory / "config.json",
            absl::StrReplaceAll(
                *ReadTextFile(golden + "/config.json", 1 << 20),
                {{"\"num_hidden_layers\": 4", absl::StrCat("\"num_hidden_layers\": ", layers)},
                 {"\"num_hidden_groups\": 2", absl::StrCat("\"num_hidden_groups\": ", groups)}}));
  return LoadCheckpoint(directory.path());
}

// For each layer the first one of the same tensors.
std::vector<size_t> FirstOfEach(const EncoderWeights& weights) {
  std::vector<size_t> firsts;
  for (const EncoderLayerWeights& layer : weights.layers) {
    size_t first = 0;
    while (!SameTensors(weights.layers[first], layer)) ++first;
    firsts.push_back(first);
  }
  return firsts;
}

TEST(AlbertTest, LayersOfAGroupAreTheSameTensors) {
  const auto four = LoadWith(4, 2), five = LoadWith(5, 2), one = LoadWith(3, 1);
  ASSERT_TRUE(four.ok() && five.ok() && one.ok()) << four.status() << five.status();
  EXPECT_EQ(FirstOfEach(four->weights), (std::vector<size_t>{0, 0, 2, 2}));
  EXPECT_EQ(FirstOfEach(five->weights), (std::vector<size_t>{0, 0, 0, 3, 3}));
  EXPECT_EQ(FirstOfEach(one->weights), (std::vector<size_t>{0, 0, 0}));
  EXPECT_TRUE(ValidateWeights(five->config, five->weights).ok());
  const absl::Status missing = LoadWith(4, 3).status();
  EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), testing::HasSubstr("albert_layer_groups.2."));
}

}  // namespace
}  // namespace attendant
