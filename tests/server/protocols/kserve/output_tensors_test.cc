// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/output_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/server/protocols/kserve/served.h"

namespace attendant {
namespace {

using testing::ElementsAre;

KServeModelInfo Served(const std::string& suffix) {
  return ServedModel(suffix, {.hidden = 2, .embedding_dims = 2});
}

TEST(RequestedOutputs, OneThatExistsOnceOrNone) {
  const KServeModelInfo model = Served(".ids");
  inference::ModelInferRequest request;
  EXPECT_TRUE(CheckRequestedOutputs(request, model).ok());
  request.add_outputs()->set_name("sentence_embedding");
  EXPECT_TRUE(CheckRequestedOutputs(request, model).ok());
  request.add_outputs()->set_name("sentence_embedding");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRequestedOutputs(request, model)));
  request.mutable_outputs()->RemoveLast();
  request.mutable_outputs(0)->set_name("last_hidden_state");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRequestedOutputs(request, model)));
  EXPECT_TRUE(CheckRequestedOutputs(request, Served(".encoder")).ok());
}

TEST(RequestedOutputs, ClassificationIsRefused) {
  inference::ModelInferRequest request;
  request.add_outputs()->set_name("sentence_embedding");
  (*request.mutable_outputs(0)->mutable_parameters())["classification"].set_int64_param(2);
  EXPECT_TRUE(absl::IsUnimplemented(CheckRequestedOutputs(request, Served(""))));
}

std::vector<float> Floats(const std::string& raw) {
  std::vector<float> values(raw.size() / sizeof(float));
  std::memcpy(values.data(), raw.data(), raw.size());
  return values;
}

TEST(Output, PooledRowsOneAfterTheOther) {
  EncodeOutput output;
  output.outputs.dims = 2;
  output.sequences.resize(2);
  output.sequences[0].result.pooled = {1, 2};
  output.sequences[1].result.pooled = {3, 4};
  inference::ModelInferResponse response;
  ToProto(output, Served(""), 0, response);
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_EQ(response.outputs(0).name(), "sentence_embedding");
  EXPECT_EQ(response.outputs(0).datatype(), "FP32");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 2));
  ASSERT_EQ(response.raw_output_contents_size(), 1);
  EXPECT_THAT(Floats(response.raw_output_contents(0)), ElementsAre(1, 2, 3, 4));
}

TEST(Output, HiddenStatesHaveZerosWhereTheMaskIsZero) {
  EncodeOutput output;
  output.hidden = 2;
  output.sequences.resize(2);
  output.sequences[0].token_ids = {5, 6, 7};
  output.sequences[0].attention_mask = {1, 0, 1};
  output.sequences[0].result.last_hidden_state = {1, 2, 3, 4};
  output.sequences[1].token_ids = {8, 9, 10};
  output.sequences[1].result.last_hidden_state = {5, 6, 7, 8, 9, 10};
  inference::ModelInferResponse response;
  ToProto(output, Served(".encoder"), 3, response);
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_EQ(response.outputs(0).name(), "last_hidden_state");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 3, 2));
  EXPECT_THAT(Floats(response.raw_output_contents(0)),
              ElementsAre(1, 2, 0, 0, 3, 4, 5, 6, 7, 8, 9, 10));
}

}  // namespace
}  // namespace attendant
