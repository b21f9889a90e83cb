// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/output_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "server/protocols/kserve/output_tensors.h"
#include "tests/server/protocols/kserve/served.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

KServeModelInfo ServedTask(const std::string& suffix, int64_t columns) {
  EncoderFacts facts{.hidden = 2, .embedding_dims = 2, .max_sequence_tokens = 8};
  facts.task_columns.fill(columns);
  return ServedModel(suffix, facts);
}

// An answer with one task, whose results are `results`.
EncodeOutput Answered(TaskKind kind, int64_t columns, std::vector<HeadResult> results) {
  EncodeOutput output;
  output.tasks.push_back({.kind = kind, .columns = columns});
  for (HeadResult& result : results) {
    output.sequences.emplace_back().result.tasks.push_back(std::move(result));
  }
  return output;
}

template <typename T>
std::vector<T> Values(const inference::ModelInferResponse& response, int output) {
  const std::string& raw = response.raw_output_contents(output);
  std::vector<T> values(raw.size() / sizeof(T));
  if (!raw.empty()) std::memcpy(values.data(), raw.data(), raw.size());
  return values;
}

std::vector<std::string> NamesIn(const inference::ModelInferResponse& response) {
  std::vector<std::string> names;
  for (const auto& tensor : response.outputs()) names.push_back(tensor.name());
  return names;
}

TEST(OutputRows, SparseVectorsArePaddedToTheLongest) {
  const EncodeOutput output = Answered(TaskKind::kSparse, 0,
                                       {{.indices = {3, 9}, .values = {0.5f, 2}, .tokens = {}},
                                        {.indices = {}, .values = {}, .tokens = {}}});
  inference::ModelInferResponse response;
  ToProto(output, ServedTask(".sparse", 0), 0, response);
  EXPECT_THAT(NamesIn(response), ElementsAre("indices", "weights"));
  EXPECT_EQ(response.outputs(0).datatype(), "INT32");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 2));
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(2, 2));
  EXPECT_THAT(Values<int32_t>(response, 0), ElementsAre(3, 9, -1, -1));
  EXPECT_THAT(Values<float>(response, 1), ElementsAre(0.5f, 2, 0, 0));
}

TEST(OutputRows, MasksHavePlacesIdsAndScores) {
  const EncodeOutput output =
      Answered(TaskKind::kFillMask, 2,
               {{.indices = {4, 5}, .values = {0.75f, 0.25f}, .tokens = {1}},
                {.indices = {6, 7, 8, 9}, .values = {1, 0, 0.5f, 0.5f}, .tokens = {2, 3}}});
  inference::ModelInferResponse response;
  ToProto(output, ServedTask(".masks", 2), 0, response);
  EXPECT_THAT(NamesIn(response), ElementsAre("tokens", "indices", "scores"));
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 2));
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(2, 2, 2));
  EXPECT_THAT(Values<int32_t>(response, 0), ElementsAre(1, -1, 2, 3));
  EXPECT_THAT(Values<int32_t>(response, 1), ElementsAre(4, 5, -1, -1, 6, 7, 8, 9));
  EXPECT_THAT(Values<float>(response, 2), ElementsAre(0.75f, 0.25f, 0, 0, 1, 0, 0.5f, 0.5f));
}

TEST(OutputRows, TokensHaveTheirIds) {
  EncodeOutput output = Answered(TaskKind::kTokenScores, 2,
                                 {{.indices = {}, .values = {1, 2, 3, 4}, .tokens = {}},
                                  {.indices = {}, .values = {5, 6}, .tokens = {}}});
  output.sequences[0].token_ids = {7, 8};
  output.sequences[1].token_ids = {9};
  inference::ModelInferResponse response;
  ToProto(output, ServedTask(".tokens", 2), 0, response);
  EXPECT_THAT(NamesIn(response), ElementsAre("token_ids", "scores"));
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(2, 2, 2));
  EXPECT_THAT(Values<int32_t>(response, 0), ElementsAre(7, 8, 9, -1));
  EXPECT_THAT(Values<float>(response, 1), ElementsAre(1, 2, 3, 4, 5, 6, 0, 0));
  EXPECT_GE(PaddedBytes(output, ServedTask(".tokens", 2)), 2 * 2 * (4 + 2 * 4));
}

TEST(OutputRows, VectorsMayBeNone) {
  const EncodeOutput output = Answered(TaskKind::kMultiVector, 3, {HeadResult{}, HeadResult{}});
  inference::ModelInferResponse response;
  ToProto(output, ServedTask(".multi_vectors", 3), 0, response);
  EXPECT_THAT(NamesIn(response), ElementsAre("tokens", "vectors"));
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(2, 0, 3));
  EXPECT_THAT(Values<float>(response, 1), IsEmpty());
}

TEST(OutputRows, OnlyTheOutputsAskedForStayInTheirOrder) {
  const EncodeOutput output =
      Answered(TaskKind::kFillMask, 1, {{.indices = {4}, .values = {0.5f}, .tokens = {1}}});
  for (const std::vector<std::string>& names : std::vector<std::vector<std::string>>{
           {"scores", "tokens"}, {"indices"}, {"scores", "indices", "tokens"}}) {
    inference::ModelInferResponse response;
    ToProto(output, ServedTask(".masks", 1), 0, response);
    KeepOutputs(names, response);
    EXPECT_EQ(NamesIn(response), names);
    ASSERT_EQ(static_cast<size_t>(response.raw_output_contents_size()), names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] != "scores") continue;
      EXPECT_THAT(Values<float>(response, static_cast<int>(i)), ElementsAre(0.5f));
    }
  }
}

TEST(OutputRows, SeveralOutputsMayBeAskedForButNotInSharedMemory) {
  const KServeModelInfo model = ServedTask(".sparse", 0);
  inference::ModelInferRequest request;
  request.add_outputs()->set_name("weights");
  request.add_outputs()->set_name("indices");
  EXPECT_TRUE(CheckRequestedOutputs(request, model, true).ok());
  auto& parameters = *request.mutable_outputs(1)->mutable_parameters();
  parameters["shared_memory_region"].set_string_param("r");
  EXPECT_TRUE(absl::IsUnimplemented(CheckRequestedOutputs(request, model, true)));
  parameters.clear();
  request.add_outputs()->set_name("indices");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRequestedOutputs(request, model, true)));
}

TEST(OutputRows, MetadataAndConfigurationTellThem) {
  inference::ModelMetadataResponse metadata;
  ToProto(ServedTask(".tokens", 4), metadata);
  ASSERT_EQ(metadata.inputs_size(), 1);
  EXPECT_THAT(metadata.inputs(0).shape(), ElementsAre(-1, 1));
  ASSERT_EQ(metadata.outputs_size(), 2);
  EXPECT_EQ(metadata.outputs(0).datatype(), "INT32");
  EXPECT_THAT(metadata.outputs(1).shape(), ElementsAre(-1, -1, 4));
  inference::ModelConfig config;
  ToProto(ServedTask(".tokens", 4), config);
  ASSERT_EQ(config.output_size(), 2);
  EXPECT_EQ(config.output(0).data_type(), inference::TYPE_INT32);
  EXPECT_THAT(config.output(1).dims(), ElementsAre(-1, 4));
}

}  // namespace
}  // namespace attendant
