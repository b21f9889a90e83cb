// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/tensor_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <limits>
#include <span>
#include <string>

#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TensorStoreTest : public ::testing::Test {
 protected:
  void WriteIndex(const std::string& weight_map) {
    WriteFile(directory_ / "model.safetensors.index.json",
              "{\"metadata\": {\"total_size\": 12}, \"weight_map\": " + weight_map + "}");
  }
  std::string Error() { return TensorStore::Open(directory_.path()).status().ToString(); }

  TempDirectory directory_;
};

TEST_F(TensorStoreTest, AlignedF32StaysInTheFile) {
  WriteFile(directory_ / "model.safetensors", SafetensorsBytes({FloatTensor("x", {2}, {1, 2})}));
  auto store = TensorStore::Open(directory_.path()).value();
  const StoredTensor* x = store->Find("x");
  ASSERT_NE(x, nullptr);
  const float* values = store->Floats(*x).value();
  EXPECT_EQ(static_cast<const void*>(values), x->data.data());
  EXPECT_EQ(values[1], 2);
}

TEST_F(TensorStoreTest, UnalignedF32IsCopied) {
  TestTensor y = FloatTensor("y", {2}, {1, 2});
  WriteFile(directory_ / "model.safetensors", SafetensorsBytes({{"x", "U8", {1}, "!"}, y}));
  auto store = TensorStore::Open(directory_.path()).value();
  const float* values = store->Floats(*store->Find("y")).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(values) % alignof(float), 0u);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 2);
}

TEST_F(TensorStoreTest, ReadsARowAlone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  WriteFile(directory_ / "model.safetensors",
            SafetensorsBytes({FloatTensor("x", {3, 2}, {1, 2, 3, 4, 5, kInfinity}),
                              {"half", "BF16", {2, 1}, std::string("\x80\x3f\x00\x40", 4)},
                              {"ids", "I32", {1, 1}, "four"}}));
  auto store = TensorStore::Open(directory_.path()).value();
  EXPECT_THAT(TensorStore::Row(*store->Find("x"), 1).value(), ElementsAre(3, 4));
  EXPECT_THAT(TensorStore::Row(*store->Find("half"), 1).value(), ElementsAre(2));
  const absl::Status infinite = TensorStore::Row(*store->Find("x"), 2).status();
  EXPECT_TRUE(absl::IsInvalidArgument(infinite)) << infinite;
  EXPECT_THAT(std::string(infinite.message()), HasSubstr("tensor `x`: value 1 of 2 is inf"));
  EXPECT_TRUE(absl::IsInvalidArgument(TensorStore::Row(*store->Find("ids"), 0).status()));
}

TEST_F(TensorStoreTest, AddsNamesAndCopies) {
  WriteFile(directory_ / "model.safetensors",
            SafetensorsBytes({FloatTensor("x", {2}, {1, 2}),
                              {"half", "BF16", {2}, std::string("\x80\x3f\x00\x40", 4)},
                              FloatTensor("inf", {1}, {std::numeric_limits<float>::infinity()})}));
  auto store = TensorStore::Open(directory_.path()).value();
  store->AddName("y", *store->Find("x"));
  EXPECT_EQ(store->Find("y"), store->Find("x"));
  for (const char* name : {"x", "half"}) {
    const std::span<float> copy = store->AddCopy("copy", *store->Find(name)).value();
    ASSERT_EQ(copy.size(), 2u);
    EXPECT_EQ(copy[1], 2);
    copy[1] = 3;
    EXPECT_EQ(store->Floats(*store->Find("copy")).value(), copy.data());
    EXPECT_EQ(store->Floats(*store->Find(name)).value()[1], 2);
    copy[0] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(store->Floats(*store->Find("copy")).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(store->AddCopy("z", *store->Find("inf")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TensorStoreTest, RefusesWhatIsNoWeight) {
  WriteFile(directory_ / "model.safetensors",
            SafetensorsBytes({FloatTensor("inf", {2}, {1, std::numeric_limits<float>::infinity()}),
                              {"ids", "I64", {1}, std::string(8, '\0')}}));
  auto store = TensorStore::Open(directory_.path()).value();
  EXPECT_EQ(store->Floats(*store->Find("inf")).status().ToString(),
            "INVALID_ARGUMENT: tensor `inf`: value 1 of 2 is inf, expected finite numbers");
  EXPECT_EQ(store->Floats(*store->Find("ids")).status().ToString(),
            "INVALID_ARGUMENT: tensor `ids`: dtype is `I64`, expected F32, F16, BF16 or F64");
}

TEST_F(TensorStoreTest, ReadsShards) {
  WriteFile(directory_ / "model-00001-of-00002.safetensors",
            SafetensorsBytes({FloatTensor("a", {1}, {1}), FloatTensor("b", {1}, {2})}));
  WriteFile(directory_ / "model-00002-of-00002.safetensors",
            SafetensorsBytes({FloatTensor("c", {1}, {3})}));
  WriteIndex(R"({"a": "model-00001-of-00002.safetensors", "b": "model-00001-of-00002.safetensors",
                 "c": "model-00002-of-00002.safetensors"})");
  auto store = TensorStore::Open(directory_.path());
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(*(*store)->Floats(*(*store)->Find("b")).value(), 2);
  EXPECT_EQ(*(*store)->Floats(*(*store)->Find("c")).value(), 3);
  EXPECT_EQ((*store)->Find("d"), nullptr);
}

TEST_F(TensorStoreTest, RefusesIndexesThatLie) {
  WriteFile(directory_ / "shard", SafetensorsBytes({FloatTensor("a", {1}, {1})}));
  WriteIndex(R"({"b": "shard"})");
  EXPECT_THAT(Error(), HasSubstr("index.json: tensor `b` is not in `shard`"));
  for (const char* name : {"../shard", "/etc/passwd", "..", ".", "", "shard\\u0000x", "x/y"}) {
    WriteIndex("{\"a\": \"" + std::string(name) + "\"}");
    EXPECT_THAT(Error(), HasSubstr("is not the name of a file in this folder")) << name;
  }
  WriteIndex(R"({"a": "gone"})");
  EXPECT_THAT(Error(), HasSubstr("gone"));
  WriteIndex(R"({"a": 1})");
  EXPECT_THAT(Error(), HasSubstr("expected a string"));
  WriteIndex(R"([])");
  EXPECT_THAT(Error(), HasSubstr("expected an object"));
  WriteFile(directory_ / "model.safetensors.index.json", "{}");
  EXPECT_THAT(Error(), HasSubstr("lacks the field `weight_map`"));
}

// Each is a mapping of the process, of which it may have 65,530.
TEST_F(TensorStoreTest, RefusesManyShards) {
  const auto open = [this](int shards) {
    std::string weight_map = "{";
    for (int i = 0; i < shards; ++i) {
      const std::string name = std::to_string(i);
      WriteFile(directory_ / name, SafetensorsBytes({FloatTensor(name, {1}, {1})}));
      weight_map += (i == 0 ? "\"" : ", \"") + name + "\": \"" + name + "\"";
    }
    WriteIndex(weight_map + "}");
    return TensorStore::Open(directory_.path()).status();
  };
  EXPECT_TRUE(open(1024).ok());
  const absl::Status many = open(1025);
  EXPECT_TRUE(absl::IsInvalidArgument(many)) << many;
  EXPECT_THAT(std::string(many.message()), HasSubstr("more shards than the limit of 1024"));
}

TEST_F(TensorStoreTest, EmptyFolder) {
  EXPECT_EQ(Error(), "NOT_FOUND: " + directory_.path() +
                         " has neither model.safetensors nor model.safetensors.index.json");
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    WriteFile(directory_ / name, "pickle");
    EXPECT_NE(Error().find("To convert it, run in that folder: python3 -c \"import glob, torch"),
              std::string::npos)
        << Error();
    std::filesystem::remove(directory_ / name);
  }
}

}  // namespace
}  // namespace attendant
