// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/kserve_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace attendant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::vector<T> Values(const std::string& raw) {
  std::vector<T> values(raw.size() / sizeof(T));
  std::memcpy(values.data(), raw.data(), values.size() * sizeof(T));
  return values;
}

KserveModel Ids(const std::string& datatype) {
  return {.name = "m",
          .max_batch_size = 8,
          .inputs = {{.name = "input_ids", .datatype = datatype, .dims = {-1}},
                     {.name = "attention_mask", .datatype = datatype, .dims = {-1}},
                     {.name = "token_type_ids", .datatype = datatype, .dims = {-1}}}};
}

TEST(KserveRequestTest, PadsIdsAndMarksThePadding) {
  const auto request = MakeKserveRequest(Ids("INT64"), {.texts = {}, .ids = {{5, 6}, {7, 8, 9}}});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->tokens, 5);
  EXPECT_THAT(request->proto.inputs(0).shape(), ElementsAre(2, 3));
  EXPECT_THAT(Values<int64_t>(request->proto.raw_input_contents(0)), ElementsAre(5, 6, 0, 7, 8, 9));
  EXPECT_THAT(Values<int64_t>(request->proto.raw_input_contents(1)), ElementsAre(1, 1, 0, 1, 1, 1));
  EXPECT_THAT(Values<int64_t>(request->proto.raw_input_contents(2)), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(KserveRequestTest, WritesEveryNumberType) {
  const auto int32 = MakeKserveRequest(Ids("INT32"), {.texts = {}, .ids = {{5, 6}}});
  EXPECT_THAT(Values<int32_t>(int32->proto.raw_input_contents(0)), ElementsAre(5, 6));
  const auto fp32 = MakeKserveRequest(Ids("FP32"), {.texts = {}, .ids = {{5, 6}}});
  EXPECT_THAT(Values<float>(fp32->proto.raw_input_contents(0)), ElementsAre(5.0f, 6.0f));
}

TEST(KserveRequestTest, WithoutAMaskAllRowsAreAsLongAsTheFirst) {
  KserveModel model = Ids("INT64");
  model.inputs.resize(1);
  const auto request = MakeKserveRequest(model, {.texts = {}, .ids = {{5, 6}, {7, 8, 9}}});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(Values<int64_t>(request->proto.raw_input_contents(0)), ElementsAre(5, 6, 7, 8));
  EXPECT_EQ(request->tokens, 4);
}

TEST(KserveRequestTest, WritesTexts) {
  const KserveModel model{.name = "m",
                          .max_batch_size = 2,
                          .inputs = {{.name = "text", .datatype = "BYTES", .dims = {1}}}};
  const auto request = MakeKserveRequest(model, {.texts = {"ab", ""}, .ids = {}});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->proto.inputs(0).shape(), ElementsAre(2, 1));
  EXPECT_EQ(request->proto.raw_input_contents(0), std::string("\2\0\0\0ab\0\0\0\0", 10));
  EXPECT_EQ(request->tokens, 0);
  // Without texts, as many words as there are ids.
  const auto spelt = MakeKserveRequest(model, {.texts = {}, .ids = {{1, 2, 3}}});
  EXPECT_THAT(spelt->proto.raw_input_contents(0), HasSubstr("river paper light"));
}

TEST(KserveRequestTest, TakesDimensionsFromShapes) {
  KserveModel model{.name = "m",
                    .max_batch_size = 0,
                    .inputs = {{.name = "image:0", .datatype = "FP32", .dims = {-1, -1, 3}}}};
  const Payload payload{.texts = {}, .ids = {{1, 2}}};
  EXPECT_THAT(std::string(MakeKserveRequest(model, payload).status().message()),
              HasSubstr("--shape image:0:N,N"));
  for (const char* bad : {"image:0", "other:1,2,3", "image:0:1,2", "image:0:1,2,0", "image:0:"}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(ApplyShapes({bad}, model))) << bad;
  }
  ASSERT_TRUE(ApplyShapes({"image:0:2,2,3"}, model).ok());
  const auto request = MakeKserveRequest(model, payload);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->proto.inputs(0).shape(), ElementsAre(2, 2, 3));
  EXPECT_EQ(request->proto.raw_input_contents(0).size(), 12 * sizeof(float));
}

TEST(KserveRequestTest, RefusesDimensionsThatNoInputHas) {
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{-2},
                                         {-1, -2},
                                         {-1, 1'000'000'000'000'000},
                                         {int64_t{1} << 32, int64_t{1} << 32},
                                         {int64_t{1} << 24, 2}}) {
    const KserveModel model{.name = "m",
                            .max_batch_size = 0,
                            .inputs = {{.name = "ids", .datatype = "INT64", .dims = dims}}};
    const absl::Status status = MakeKserveRequest(model, {.texts = {}, .ids = {{1, 2}}}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
}

TEST(KserveRequestTest, RefusesWhatTheModelCannotTake) {
  KserveModel model = Ids("INT64");
  model.max_batch_size = 1;
  EXPECT_THAT(
      std::string(MakeKserveRequest(model, {.texts = {}, .ids = {{1}, {2}}}).status().message()),
      HasSubstr("--batch 2: the limit of m is 1"));
  EXPECT_THAT(std::string(MakeKserveRequest(model, {.texts = {"a"}, .ids = {}}).status().message()),
              HasSubstr("use --lengths"));
  inference::ModelMetadataResponse metadata;
  metadata.add_inputs()->set_datatype("FP16");
  EXPECT_TRUE(absl::IsFailedPrecondition(ToKserveModel(metadata, 0).status()));
}

TEST(KserveRequestTest, ReadsMetadata) {
  inference::ModelMetadataResponse metadata;
  metadata.set_name("m");
  auto* input = metadata.add_inputs();
  input->set_datatype("INT64");
  input->add_shape(-1);
  input->add_shape(16);
  EXPECT_THAT(ToKserveModel(metadata, 4)->inputs[0].dims, ElementsAre(16));
  EXPECT_THAT(ToKserveModel(metadata, 0)->inputs[0].dims, ElementsAre(-1, 16));
}

}  // namespace
}  // namespace attendant::client
