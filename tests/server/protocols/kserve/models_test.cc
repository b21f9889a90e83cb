// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/protocols/kserve/served.h"

namespace attendant {
namespace {

using testing::ElementsAre;

KServeModelInfo Minilm(const std::string& suffix) {
  KServeModelInfo info =
      ServedModel(suffix, {.hidden = 384, .embedding_dims = 384, .max_sequence_tokens = 512});
  info.name = info.kind->NameOf("minilm");
  info.max_batch_size = 4096;
  return info;
}

TEST(Metadata, ShapesCarryTheBatchDimension) {
  inference::ModelMetadataResponse metadata;
  ToProto(Minilm(""), metadata);
  EXPECT_EQ(metadata.name(), "minilm");
  EXPECT_THAT(metadata.versions(), ElementsAre("1"));
  ASSERT_EQ(metadata.inputs_size(), 1);
  EXPECT_EQ(metadata.inputs(0).name(), "text");
  EXPECT_EQ(metadata.inputs(0).datatype(), "BYTES");
  EXPECT_THAT(metadata.inputs(0).shape(), ElementsAre(-1, 1));
  ASSERT_EQ(metadata.outputs_size(), 1);
  EXPECT_EQ(metadata.outputs(0).name(), "sentence_embedding");
  EXPECT_EQ(metadata.outputs(0).datatype(), "FP32");
  EXPECT_THAT(metadata.outputs(0).shape(), ElementsAre(-1, 384));
}

TEST(Metadata, EveryVersionThatServesIsThere) {
  KServeModelInfo info = Minilm(".ids");
  info.versions = {"2", "10"};
  inference::ModelMetadataResponse metadata;
  ToProto(info, metadata);
  EXPECT_THAT(metadata.versions(), ElementsAre("2", "10"));
  inference::ModelConfig config;
  ToProto(info, config);
  EXPECT_EQ(config.version_policy().latest().num_versions(), 2u);
}

TEST(Metadata, EncoderAnswersPerToken) {
  inference::ModelMetadataResponse metadata;
  ToProto(Minilm(".encoder"), metadata);
  ASSERT_EQ(metadata.inputs_size(), 3);
  EXPECT_EQ(metadata.inputs(0).name(), "input_ids");
  EXPECT_EQ(metadata.inputs(1).name(), "attention_mask");
  EXPECT_EQ(metadata.inputs(2).name(), "token_type_ids");
  for (const auto& input : metadata.inputs()) {
    EXPECT_EQ(input.datatype(), "INT64");
    EXPECT_THAT(input.shape(), ElementsAre(-1, -1));
  }
  ASSERT_EQ(metadata.outputs_size(), 1);
  EXPECT_EQ(metadata.outputs(0).name(), "last_hidden_state");
  EXPECT_THAT(metadata.outputs(0).shape(), ElementsAre(-1, -1, 384));
}

TEST(Config, DimsLeaveTheBatchDimensionOut) {
  inference::ModelConfig config;
  ToProto(Minilm(".ids"), config);
  EXPECT_EQ(config.name(), "minilm.ids");
  EXPECT_EQ(config.max_batch_size(), 4096);
  ASSERT_EQ(config.input_size(), 3);
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_INT64);
  EXPECT_THAT(config.input(0).dims(), ElementsAre(-1));
  EXPECT_FALSE(config.input(0).optional());
  EXPECT_TRUE(config.input(1).optional());
  EXPECT_TRUE(config.input(2).optional());
  ASSERT_EQ(config.output_size(), 1);
  EXPECT_EQ(config.output(0).data_type(), inference::TYPE_FP32);
  EXPECT_THAT(config.output(0).dims(), ElementsAre(384));
  EXPECT_TRUE(config.has_dynamic_batching());
  EXPECT_FALSE(config.model_transaction_policy().decoupled());
}

TEST(Config, TextIsAString) {
  inference::ModelConfig config;
  ToProto(Minilm(""), config);
  ASSERT_EQ(config.input_size(), 1);
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_STRING);
  EXPECT_THAT(config.input(0).dims(), ElementsAre(1));
}

TEST(Statistics, CountsNanosecondsAndBatchesComeThrough) {
  NameStatisticsSnapshot snapshot;
  snapshot.last_inference = absl::FromUnixMillis(1234);
  snapshot.inference_count = 7;
  snapshot.execution_count = 3;
  snapshot.success = {5, absl::Microseconds(2)};
  snapshot.fail = {1, absl::Nanoseconds(3)};
  snapshot.queue = {5, absl::Nanoseconds(4)};
  snapshot.compute_input = {5, absl::Nanoseconds(5)};
  snapshot.compute_infer = {5, absl::Nanoseconds(6)};
  snapshot.compute_output = {5, absl::Nanoseconds(7)};
  snapshot.batches[4].compute_infer = {2, absl::Nanoseconds(8)};
  inference::ModelStatistics statistics;
  KServeModelInfo info = Minilm(".ids");
  info.version = "3";
  ToProto(info, snapshot, statistics);
  EXPECT_EQ(statistics.name(), "minilm.ids");
  EXPECT_EQ(statistics.version(), "3");
  EXPECT_EQ(statistics.last_inference(), 1234u);
  EXPECT_EQ(statistics.inference_count(), 7u);
  EXPECT_EQ(statistics.execution_count(), 3u);
  const inference::InferStatistics& infer = statistics.inference_stats();
  EXPECT_EQ(infer.success().count(), 5u);
  EXPECT_EQ(infer.success().ns(), 2000u);
  EXPECT_EQ(infer.fail().ns(), 3u);
  EXPECT_EQ(infer.queue().ns(), 4u);
  EXPECT_EQ(infer.compute_input().ns(), 5u);
  EXPECT_EQ(infer.compute_infer().ns(), 6u);
  EXPECT_EQ(infer.compute_output().ns(), 7u);
  ASSERT_EQ(statistics.batch_stats_size(), 1);
  EXPECT_EQ(statistics.batch_stats(0).batch_size(), 4u);
  EXPECT_EQ(statistics.batch_stats(0).compute_infer().count(), 2u);
  EXPECT_EQ(statistics.batch_stats(0).compute_infer().ns(), 8u);
}

}  // namespace
}  // namespace attendant
