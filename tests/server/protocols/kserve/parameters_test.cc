// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/parameters.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace attendant {
namespace {

inference::InferParameter Int(int64_t value) {
  inference::InferParameter parameter;
  parameter.set_int64_param(value);
  return parameter;
}

inference::InferParameter Unsigned(uint64_t value) {
  inference::InferParameter parameter;
  parameter.set_uint64_param(value);
  return parameter;
}

inference::InferParameter Text(const char* value) {
  inference::InferParameter parameter;
  parameter.set_string_param(value);
  return parameter;
}

InferParameters Decoded(const InferParameterMap& parameters) {
  const absl::StatusOr<InferParameters> decoded = FromProto(parameters);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded.value_or(InferParameters{});
}

TEST(Parameters, NoneAreTheDefaults) {
  const InferParameters decoded = Decoded({});
  EXPECT_EQ(decoded.priority, 0);
  EXPECT_EQ(decoded.timeout, absl::InfiniteDuration());
}

TEST(Parameters, APromptIsAText) {
  EXPECT_EQ(Decoded({}).prompt_name, std::nullopt);
  InferParameterMap parameters;
  parameters["prompt_name"] = Text("query");
  EXPECT_EQ(Decoded(parameters).prompt_name, "query");
  parameters["prompt_name"] = Text("");
  EXPECT_EQ(Decoded(parameters).prompt_name, "");
  parameters["prompt_name"] = Int(1);
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(parameters).status()));
}

TEST(Parameters, PriorityOneIsTheHighest) {
  struct Case {
    inference::InferParameter level;
    int priority;
  };
  for (const Case& c : {Case{Unsigned(0), 0}, Case{Unsigned(1), 100}, Case{Int(2), 99},
                        Case{Unsigned(101), 0}, Case{Int(201), -100}}) {
    InferParameterMap parameters;
    parameters["priority"] = c.level;
    EXPECT_EQ(Decoded(parameters).priority, c.priority) << c.level.DebugString();
  }
}

TEST(Parameters, SharedMemoryNeedsARegionAndASize) {
  InferParameterMap parameters;
  EXPECT_FALSE(SharedTensorFromProto("t", parameters)->has_value());
  parameters["shared_memory_region"] = Text("mine");
  EXPECT_TRUE(absl::IsInvalidArgument(SharedTensorFromProto("t", parameters).status()));
  parameters["shared_memory_byte_size"] = Int(64);
  const auto shared = SharedTensorFromProto("t", parameters);
  ASSERT_TRUE(shared.ok() && shared->has_value()) << shared.status();
  EXPECT_EQ((*shared)->region, "mine");
  EXPECT_EQ((*shared)->bytes, 64);
  EXPECT_EQ((*shared)->offset, 0);
  parameters["shared_memory_offset"] = Unsigned(8);
  EXPECT_EQ((*SharedTensorFromProto("t", parameters))->offset, 8);
  InferParameterMap written;
  ToProto(**SharedTensorFromProto("t", parameters), written);
  EXPECT_EQ((*SharedTensorFromProto("t", written))->offset, 8);
  for (const inference::InferParameter& bad : {Int(-1), Text("8")}) {
    parameters["shared_memory_offset"] = bad;
    EXPECT_TRUE(absl::IsInvalidArgument(SharedTensorFromProto("t", parameters).status()));
  }
  parameters["shared_memory_region"] = Int(1);
  parameters["shared_memory_offset"] = Int(0);
  EXPECT_TRUE(absl::IsInvalidArgument(SharedTensorFromProto("t", parameters).status()));
  EXPECT_TRUE(CheckTensorParameters("t", parameters, /*shared_memory=*/true).ok());
  EXPECT_TRUE(absl::IsUnimplemented(CheckTensorParameters("t", parameters)));
}

TEST(Parameters, TimeoutIsInMicrosecondsAndZeroIsNone) {
  InferParameterMap parameters;
  parameters["timeout"] = Int(1500);
  EXPECT_EQ(Decoded(parameters).timeout, absl::Microseconds(1500));
  parameters["timeout"] = Int(0);
  EXPECT_EQ(Decoded(parameters).timeout, absl::InfiniteDuration());
}

TEST(Parameters, BadValuesAreRefused) {
  for (const char* name : {"priority", "timeout"}) {
    for (const inference::InferParameter& value :
         {Int(-1), Int(std::numeric_limits<int64_t>::min()),
          Unsigned(std::numeric_limits<uint64_t>::max()), Text("5"), inference::InferParameter()}) {
      InferParameterMap parameters;
      parameters[name] = value;
      EXPECT_TRUE(absl::IsInvalidArgument(FromProto(parameters).status()))
          << name << " " << value.DebugString();
    }
  }
  InferParameterMap parameters;
  parameters["priority"] = Int(202);
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(parameters).status()));
}

TEST(Parameters, ReservedAndUnknownOnesPass) {
  InferParameterMap parameters;
  parameters["sequence_id"] = Int(7);
  parameters["triton_enable_empty_final_response"].set_bool_param(true);
  parameters["trace_tag"] = Text("x");
  EXPECT_EQ(Decoded(parameters).priority, 0);
}

TEST(TensorParameters, SharedMemoryAndClassificationAreRefused) {
  InferParameterMap parameters;
  EXPECT_TRUE(CheckTensorParameters("t", parameters).ok());
  parameters["binary_data"].set_bool_param(true);
  parameters["classification"] = Int(0);
  EXPECT_TRUE(CheckTensorParameters("t", parameters).ok());
  parameters["classification"] = Int(3);
  EXPECT_TRUE(absl::IsUnimplemented(CheckTensorParameters("t", parameters)));
  parameters.erase("classification");
  parameters["shared_memory_region"] = Text("region");
  EXPECT_TRUE(absl::IsUnimplemented(CheckTensorParameters("t", parameters)));
}

}  // namespace
}  // namespace attendant
