// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SafetensorsTest : public ::testing::Test {
 protected:
  absl::StatusOr<SafetensorsFile> Open(const std::string& bytes) {
    WriteFile(directory_ / "some.safetensors", bytes);
    return SafetensorsFile::Open(directory_ / "some.safetensors");
  }
  std::string Error(const std::string& bytes) { return Open(bytes).status().ToString(); }

  TempDirectory directory_;
};

TEST_F(SafetensorsTest, ReadsTensors) {
  absl::StatusOr<SafetensorsFile> file =
      Open(SafetensorsBytes({FloatTensor("b", {2, 3}, {1, 2, 3, 4, 5, 6}),
                             FloatTensor("empty", {0, 3}, {}),
                             FloatTensor("scalar", {}, {7}),
                             {"a", "U8", {3}, "xyz"}}));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), 4u);
  EXPECT_EQ(file->tensors()[0].name, "a");
  const StoredTensor* b = file->Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_THAT(b->dims, ElementsAre(2, 3));
  EXPECT_EQ(b->dtype, "F32");
  ASSERT_EQ(b->data.size(), 24u);
  EXPECT_EQ(reinterpret_cast<const float*>(b->data.data())[5], 6);
  EXPECT_EQ(file->Find("scalar")->data.size(), 4u);
  EXPECT_TRUE(file->Find("empty")->data.empty());
  EXPECT_EQ(file->Find("a")->data[2], std::byte{'z'});
  EXPECT_EQ(file->Find("aa"), nullptr);
  EXPECT_EQ(file->Find(""), nullptr);
}

TEST_F(SafetensorsTest, FileMayBeRemovedWhileMapped) {
  absl::StatusOr<SafetensorsFile> file = Open(SafetensorsBytes({FloatTensor("x", {1}, {7})}));
  ASSERT_TRUE(file.ok());
  const SafetensorsFile moved = *std::move(file);
  ASSERT_EQ(unlink(moved.path().c_str()), 0);
  EXPECT_EQ(*reinterpret_cast<const float*>(moved.Find("x")->data.data()), 7);
}

TEST_F(SafetensorsTest, AcceptsMetadataAndNoTensors) {
  EXPECT_TRUE(Open(SafetensorsBytes(R"({"__metadata__":{"format":"pt"}})", "")).ok());
  EXPECT_TRUE(Open(SafetensorsBytes("{}", "")).ok());
}

TEST_F(SafetensorsTest, RefusesEveryTruncation) {
  const std::string whole =
      SafetensorsBytes({FloatTensor("a", {2}, {1, 2}), FloatTensor("b", {1}, {3})});
  ASSERT_TRUE(Open(whole).ok());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    ASSERT_TRUE(absl::IsInvalidArgument(Open(whole.substr(0, bytes)).status())) << bytes;
  }
  EXPECT_THAT(Error(whole.substr(0, 7)), HasSubstr("has 7 bytes, a safetensors file at least 8"));
  EXPECT_THAT(Error(whole + "x"), HasSubstr("the tensors end at data byte 12 of 13"));
}

TEST_F(SafetensorsTest, RefusesLyingHeaderLengths) {
  const std::string text = "{}";
  const auto with_length = [&](uint64_t length) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(length >> (8 * i) & 0xff));
    return bytes + text;
  };
  EXPECT_TRUE(Open(with_length(2)).ok());
  EXPECT_THAT(Error(with_length(0)), HasSubstr("the header does not begin with `{`"));
  EXPECT_THAT(Error(with_length(3)), HasSubstr("announces a header of 3 bytes, 2 follow"));
  EXPECT_THAT(Error(with_length(100'000'000)), HasSubstr("of 100000000 bytes, 2 follow"));
  EXPECT_THAT(Error(with_length(100'000'001)), HasSubstr("the limit is 100000000"));
  EXPECT_THAT(Error(with_length(uint64_t{1} << 63)), HasSubstr("9223372036854775808"));
  EXPECT_THAT(Error(with_length(~uint64_t{0})), HasSubstr("18446744073709551615"));
  EXPECT_THAT(Error(with_length(~uint64_t{0} - 7)), HasSubstr("18446744073709551608"));
}

struct Lie {
  const char* header;
  const char* message;
};

class SafetensorsLieTest : public SafetensorsTest, public ::testing::WithParamInterface<Lie> {};

// Each over eight bytes of data.
TEST_P(SafetensorsLieTest, IsRefused) {
  const std::string error = Error(SafetensorsBytes(GetParam().header, "01234567"));
  EXPECT_THAT(error, HasSubstr("INVALID_ARGUMENT")) << GetParam().header;
  EXPECT_THAT(error, HasSubstr("some.safetensors"));
  EXPECT_THAT(error, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Lies, SafetensorsLieTest,
    ::testing::Values(
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})",
            "`x`: data_offsets [0, 9] do not lie in the file's 8 bytes of data"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "[8, 0] do not lie"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[9,9]}})", "[9, 9] do not lie"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})",
            "`x`.`data_offsets`[0]: is -8, expected >= 0"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,9223372036854775807]}})",
            "do not lie"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551624]}})",
            "expected an integer"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8.0]}})", "expected an integer"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "has 1 numbers, expected 2"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", "has 3 numbers"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":"08"}})", "expected an array"},
        Lie{R"({"x":{"dtype":"F32","shape":[2]}})", "lacks the field `data_offsets`"},
        Lie{R"({"x":{"dtype":"F32","data_offsets":[0,8]}})", "lacks the field `shape`"},
        Lie{R"({"x":{"shape":[2],"data_offsets":[0,8]}})", "lacks the field `dtype`"},
        Lie{R"({"x":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", "unknown dtype `F33`"},
        Lie{R"({"x":{"dtype":"","shape":[2],"data_offsets":[0,8]}})", "unknown dtype ``"},
        Lie{R"({"x":{"dtype":32,"shape":[2],"data_offsets":[0,8]}})", "expected a string"},
        Lie{R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
            "shape [3] of F32 takes 12 bytes, data_offsets [0, 8] hold 8"},
        Lie{R"({"x":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}})", "takes 4 bytes"},
        Lie{R"({"x":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "is -2, expected >= 0"},
        Lie{R"({"x":{"dtype":"F32","shape":[-1,-2],"data_offsets":[0,8]}})", "is -1"},
        Lie{R"({"x":{"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]}})",
            "has more bytes than 64 bits can count"},
        Lie{R"({"x":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8]}})",
            "has more bytes than 64 bits can count"},
        Lie{R"({"x":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", "expected an array"},
        Lie{R"({"x":{"dtype":"F32","shape":[null],"data_offsets":[0,8]}})", "is null"},
        Lie{R"({"x":{"dtype":"F32","shape":[NaN],"data_offsets":[0,8]}})", "not valid JSON"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                "x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
            "field `x` occurs twice"},
        Lie{R"({"x":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
            "field `dtype` occurs twice"},
        Lie{R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
            "tensor `x` starts at data byte 4, the one before it ends at 0"},
        Lie{R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
            "the tensors end at data byte 4 of 8"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                "y":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
            "tensor `y` starts at data byte 4, the one before it ends at 8"},
        Lie{R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                "y":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
            "starts at data byte 0, the one before it ends at 8"},
        Lie{R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},
                "y":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
            "tensor `y` starts at data byte 4, the one before it ends at 3"},
        Lie{R"({"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},
                "y":{"dtype":"U8","shape":[0],"data_offsets":[3,3]}})",
            "tensor `y` starts at data byte 3"},
        Lie{R"({})", "the tensors end at data byte 0 of 8"},
        Lie{R"({"x":7})", "expected an object"}, Lie{R"({"x":null})", "lacks the field `x`"},
        Lie{R"([])", "does not begin with `{`"}, Lie{R"( {})", "does not begin with `{`"},
        Lie{R"({"x":[[[[[[]]]]]]})", "nested deeper"},
        Lie{R"({"__metadata__":{"a":1}})", "`__metadata__`.`a` is an integer, expected a string"},
        Lie{R"({"__metadata__":[]})", "expected an object"}, Lie{R"({)", "not valid JSON"},
        Lie{R"({}})", "not valid JSON"}));

TEST_F(SafetensorsTest, RefusesHeadersWithTooManyValues) {
  std::string header = R"({"x":{"dtype":"F32","shape":[1)";
  for (int i = 0; i < (1 << 20); ++i) header += ",1";
  EXPECT_THAT(Error(SafetensorsBytes(header + R"(],"data_offsets":[0,4]}})", "0123")),
              HasSubstr("more values than the limit of 1048576"));
}

TEST_F(SafetensorsTest, FilesThatAreNone) {
  EXPECT_TRUE(absl::IsNotFound(SafetensorsFile::Open(directory_ / "none").status()));
  EXPECT_THAT(SafetensorsFile::Open(directory_.path()).status().ToString(),
              HasSubstr("is not a regular file"));
  EXPECT_THAT(Error(""), HasSubstr("has 0 bytes"));
  if (geteuid() == 0) return;  // who may read everything
  WriteFile(directory_ / "secret", "");
  ASSERT_EQ(chmod((directory_ / "secret").c_str(), 0), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(SafetensorsFile::Open(directory_ / "secret").status()));
}

}  // namespace
}  // namespace attendant
