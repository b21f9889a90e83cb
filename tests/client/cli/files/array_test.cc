// SPDX-License-Identifier: Apache-2.0
// The readers of .npy and safetensors files: what they convert, and that they trust nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "client/cli/files/array.h"
#include "client/cli/files/npy.h"
#include "client/cli/files/safetensors.h"
#include "tests/support/checkpoint.h"

namespace attendant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string NpyFile(const std::string& header, const std::string& data, char version = 1) {
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  for (size_t i = 0; i < (version == 1 ? 2u : 4u); ++i) {
    file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return file + header + data;
}

std::string Dict(const std::string& descr, const std::string& shape,
                 const char* fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

template <typename T>
std::string Bytes(std::initializer_list<T> values) {
  std::string bytes;
  for (T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return bytes;
}

std::string Error(const absl::StatusOr<Array>& array) {
  EXPECT_TRUE(absl::IsFailedPrecondition(array.status())) << array.status();
  return std::string(array.status().message());
}

TEST(NpyTest, SaysWhyAFileIsNotComplete) {
  const absl::Status full = WriteNpy("/dev/full", {1}, std::vector<float>{1});
  EXPECT_EQ(full, absl::FailedPreconditionError(
                      "cannot write the file /dev/full: No space left on device"));
}

TEST(NpyTest, ReadsEveryTypeThatIsANumber) {
  const std::pair<const char*, std::string> files[] = {
      {"<f4", Bytes<float>({1, 2})},
      {"<f8", Bytes<double>({1, 2})},
      {"<f2", Bytes<uint16_t>({0x3c00, 0x4000})},
      {">f4", std::string("\x3f\x80\0\0\x40\0\0\0", 8)},
      {">f2", std::string("\x3c\0\x40\0", 4)},
      {"|i1", Bytes<int8_t>({1, 2})},
      {"|u1", Bytes<uint8_t>({1, 2})},
      {"<i2", Bytes<int16_t>({1, 2})},
      {"<i8", Bytes<int64_t>({1, 2})},
      {">u4", std::string("\0\0\0\1\0\0\0\2", 8)},
      {"<u8", Bytes<uint64_t>({1, 2})}};
  for (const auto& [descr, data] : files) {
    const absl::StatusOr<Array> array = ParseNpy(NpyFile(Dict(descr, "(2,)"), data), "x");
    ASSERT_TRUE(array.ok()) << descr << ": " << array.status();
    EXPECT_THAT(array->shape, ElementsAre(2));
    EXPECT_THAT(array->values, ElementsAre(1, 2)) << descr;
    EXPECT_FALSE(array->is_bool);
  }
  const absl::StatusOr<Array> truth =
      ParseNpy(NpyFile(Dict("|b1", "(2,)"), std::string("\1\0", 2)), "x");
  ASSERT_TRUE(truth.ok());
  EXPECT_TRUE(truth->is_bool);
  EXPECT_THAT(truth->values, ElementsAre(1, 0));
  EXPECT_THAT(ParseNpy(NpyFile(Dict("<i2", "(1,)"), Bytes<int16_t>({-3})), "x")->values,
              ElementsAre(-3));
}

TEST(NpyTest, ReadsVersionsShapesAndFortranOrder) {
  for (char version : {'\1', '\2', '\3'}) {
    EXPECT_TRUE(ParseNpy(NpyFile(Dict("<f4", "(1, 2)"), Bytes<float>({1, 2}), version), "x").ok());
  }
  const absl::StatusOr<Array> scalar = ParseNpy(NpyFile(Dict("<f4", "()"), Bytes<float>({5})), "x");
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_TRUE(scalar->shape.empty());
  EXPECT_TRUE(ParseNpy(NpyFile(Dict("<f4", "(0, 3)"), ""), "x").ok());
  const absl::StatusOr<Array> turned =
      ParseNpy(NpyFile(Dict("<f4", "(2, 3)", "True"), Bytes<float>({1, 4, 2, 5, 3, 6})), "x");
  ASSERT_TRUE(turned.ok());
  EXPECT_THAT(turned->values, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(NpyTest, RefusesWhatItCannotTrust) {
  const std::string data = Bytes<float>({1, 2});
  const std::string good = NpyFile(Dict("<f4", "(2,)"), data);
  ASSERT_TRUE(ParseNpy(good, "x").ok());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(absl::IsFailedPrecondition(ParseNpy(good.substr(0, size), "x").status())) << size;
  }
  EXPECT_THAT(Error(ParseNpy(good + "x", "file.npy")), HasSubstr("file.npy"));
  EXPECT_THAT(Error(ParseNpy(NpyFile(Dict("<f4", "(2,)"), data, 4), "x")),
              HasSubstr("version is 4"));
  EXPECT_THAT(Error(ParseNpy(NpyFile(std::string(70000, ' '), data, 2), "x")),
              HasSubstr("limit is 65536"));
  for (const char* descr :
       {"|O", "<c8", "<U3", "|S4", "<f16", "<f1", "|b2", "<i3", "f4", "", "<m8"}) {
    EXPECT_THAT(Error(ParseNpy(NpyFile(Dict(descr, "(2,)"), data), "x")), HasSubstr("dtype"));
  }
  for (const char* shape : {"(-2,)", "(2)", "2", "(2,", "(99999999999999999999,)", "[2]",
                            "(2, 'a')", "(9000000000000000000, 9000000000000000000)"}) {
    Error(ParseNpy(NpyFile(Dict("<f4", shape), data), "x"));
  }
  for (const char* header :
       {"", "{}", "{'descr': '<f4'}", "import os",
        "{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} + 1",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"}) {
    EXPECT_THAT(Error(ParseNpy(NpyFile(header, data), "x")), HasSubstr("header"));
  }
  EXPECT_THAT(Error(ParseNpy(NpyFile(Dict("|b1", "(1,)"), "\2"), "x")), HasSubstr("truth value 2"));
  EXPECT_THAT(Error(ParseNpy(NpyFile(Dict("<i4", "(1,)"), Bytes<int32_t>({16777217})), "x")),
              HasSubstr("16777217, which f32 does not hold"));
}

std::string SafetensorsFile(const std::string& header, const std::string& data) {
  return Bytes<uint64_t>({header.size()}) + header + data;
}

TEST(SafetensorsTest, ReadsWhatItWrites) {
  const TempDirectory folder;
  const std::string path = folder / "arrays.safetensors";
  const Tensor a{.shape = {2, 1}, .values = {1, 2}};
  const Tensor b{.shape = {3}, .values = {4, 5, 6}};
  ASSERT_TRUE(WriteSafetensors(path, {{"a", &a}, {"b", &b}}).ok());
  const auto tensors = ReadSafetensors(path);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(tensors->at("a").shape, ElementsAre(2, 1));
  EXPECT_THAT(tensors->at("b").values, ElementsAre(4, 5, 6));
  EXPECT_THAT(LoadArray(path + ":b", "query")->values, ElementsAre(4, 5, 6));
  EXPECT_THAT(Error(LoadArray(path, "query")), HasSubstr("no tensor 'query'; it has a, b"));
  std::filesystem::remove(path);
  EXPECT_THAT(Error(LoadArray(path, "query")), HasSubstr("there is no file"));
}

TEST(SafetensorsTest, RefusesWhatItCannotTrust) {
  const std::string data = Bytes<float>({1, 2});
  const std::string good = SafetensorsFile(
      R"({"__metadata__": {"a": "b"}, "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})",
      data);
  ASSERT_TRUE(ParseSafetensors(good, "f").ok()) << ParseSafetensors(good, "f").status();
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(absl::IsFailedPrecondition(ParseSafetensors(good.substr(0, size), "f").status()))
        << size;
  }
  for (const char* header :
       {"", "[]", "{\"x\": 1}", R"({"x": {"shape": [2], "data_offsets": [0, 8]}})",
        R"({"x": {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]}})",
        R"({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})",
        R"({"x": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})",
        R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})",
        R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}})",
        R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0]}})",
        R"({"x": {"dtype": "F32", "shape": [1e3], "data_offsets": [0, 8]}})",
        R"({"x": {"dtype": "F32", "shape": [9000000000000000000, 9], "data_offsets": [0, 8]}})"}) {
    EXPECT_TRUE(
        absl::IsFailedPrecondition(ParseSafetensors(SafetensorsFile(header, data), "f").status()))
        << header;
  }
  const std::string deep(100000, '[');
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ParseSafetensors(SafetensorsFile(deep, data), "f").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      ParseSafetensors(Bytes<uint64_t>({~uint64_t{0}}) + data, "f").status()));
}

}  // namespace
}  // namespace attendant::client
