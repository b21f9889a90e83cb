// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/scan/wire_scan.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attendant/v1/attention.pb.h"
#include "attendant/v1/encoder.pb.h"
#include "inference/grpc_service.pb.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

const WireSchema& EncodeSchema() {
  static const WireSchema schema(*v1::EncodeRequest::descriptor(),
                                 {.limits = {{"attendant.v1.Sequences.sequences", 3},
                                             {"attendant.v1.OutputSelection.hidden_layers", 5}},
                                  .id_field = "id",
                                  .model_field = "model"});
  return schema;
}

const WireSchema& InferSchema() {
  static const WireSchema schema(*inference::ModelInferRequest::descriptor());
  return schema;
}

// The bytes in blocks of every small size too: a number or a length may lie across two of them.
absl::Status Scan(const WireSchema& schema, const std::string& bytes, WireSummary& summary) {
  absl::Status whole;
  for (int block : {-1, 1, 2, 3, 7}) {
    summary = WireSummary();
    google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()),
                                                  block);
    const absl::Status status =
        ScanWire(schema, static_cast<int64_t>(bytes.size()), stream, summary);
    if (block == -1) whole = status;
    EXPECT_EQ(status, whole) << "in blocks of " << block;
  }
  return whole;
}

absl::Status Scan(const WireSchema& schema, const std::string& bytes) {
  WireSummary summary;
  return Scan(schema, bytes, summary);
}

v1::EncodeRequest SomeRequest() {
  v1::EncodeRequest request;
  request.set_model("tiny");
  request.set_id("seven");
  v1::TokenIds& ids = *request.mutable_sequences()->add_sequences()->mutable_ids();
  for (int32_t id : {1, 300, 70000, -1}) ids.add_token_ids(id);
  ids.add_attention_mask(true);
  request.mutable_sequences()->add_sequences()->set_text("W\u00f6rter");
  request.mutable_outputs()->mutable_pooled()->set_normalize(true);
  request.set_priority(-7);
  return request;
}

TEST(WireScanTest, HandsOutIdAndModelOfAGoodMessage) {
  WireSummary summary;
  EXPECT_TRUE(Scan(EncodeSchema(), SomeRequest().SerializeAsString(), summary).ok());
  EXPECT_EQ(summary.id, "seven");
  EXPECT_EQ(summary.model, "tiny");
  EXPECT_TRUE(Scan(EncodeSchema(), "").ok());
}

TEST(WireScanTest, CountsTheMemoryOfAllThatTheParserMakes) {
  v1::EncodeRequest request = SomeRequest();
  v1::TokenIds& ids = *request.mutable_sequences()->add_sequences()->mutable_ids();
  for (int i = 0; i < 1000; ++i) ids.add_segment_ids(0);
  inference::ModelInferRequest infer;
  for (int i = 0; i < 60; ++i) {
    infer.add_inputs()->mutable_contents()->add_bytes_contents();
    infer.add_outputs();
    infer.add_raw_input_contents("not so short a string");
    (*infer.mutable_parameters())[absl::StrCat(i)].set_int64_param(1);
  }
  WireSummary summary;
  ASSERT_TRUE(Scan(EncodeSchema(), request.SerializeAsString(), summary).ok());
  request.ParseFromString(request.SerializeAsString());
  EXPECT_GE(summary.memory_bytes, static_cast<int64_t>(request.SpaceUsedLong()));
  EXPECT_LE(summary.memory_bytes, 8 * static_cast<int64_t>(request.SpaceUsedLong()));
  ASSERT_TRUE(Scan(InferSchema(), infer.SerializeAsString(), summary).ok());
  infer.ParseFromString(infer.SerializeAsString());
  EXPECT_GE(summary.memory_bytes, static_cast<int64_t>(infer.SpaceUsedLong()));
  EXPECT_LE(summary.memory_bytes, 4 * static_cast<int64_t>(infer.SpaceUsedLong()));
}

TEST(WireScanTest, RefusesEveryPrefixThatTheParserRefuses) {
  const std::string bytes = SomeRequest().SerializeAsString();
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const std::string prefix = bytes.substr(0, size);
    v1::EncodeRequest parsed;
    EXPECT_EQ(Scan(EncodeSchema(), prefix).ok(), parsed.ParseFromString(prefix)) << size;
  }
}

std::string Repeated(const std::string& bytes, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += bytes;
  return text;
}

struct Refused {
  const char* name;
  std::string bytes;
  const char* message;
};

class EncodeRefusedTest : public testing::TestWithParam<Refused> {};

TEST_P(EncodeRefusedTest, NamesTheReason) {
  const absl::Status status = Scan(EncodeSchema(), GetParam().bytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, EncodeRefusedTest,
    testing::Values(
        Refused{"Garbage", std::string(64, '\xff'), "not a message of type attendant.v1.Encode"},
        Refused{"LengthBeyondTheEnd", "\x0a\xff\xff\xff\xff\x07", "does not end inside it"},
        Refused{"LengthBeyondItsMessage", std::string("\x1a\x02\x0a\x02\x0a\x00", 6),
                "does not end inside it"},
        Refused{"VarintWithoutEnd", "\x38\x80\x80", "does not end inside it"},
        Refused{"PackedNumbersWithoutEnd", "\x22\x03\x1a\x01\x80", "does not end inside it"},
        Refused{"FieldNumberZero", std::string("\x00\x00", 2), "without a number"},
        Refused{"Group", "\x53\x54", "has a group"},
        Refused{"FourSequences", "\x1a\x08" + Repeated(std::string("\x0a\x00", 2), 4),
                "Sequences.sequences has more than 3 elements"},
        Refused{"TextTwice", std::string("\x1a\x06\x0a\x04\x0a\x00\x0a\x00", 8),
                "Sequence.text comes twice"},
        Refused{"InputTwice", std::string("\x1a\x00\x1a\x00", 4),
                "EncodeRequest.sequences comes twice"},
        Refused{"UnknownFields", Repeated(std::string("\x7a\x00", 2), 65),
                "more than 64 fields of unknown numbers"},
        Refused{"UnknownFieldsInside", "\x22\x82\x01" + Repeated(std::string("\x40\x00", 2), 65),
                "more than 64 fields of unknown numbers"},
        Refused{"WrongWireType", Repeated(std::string("\x18\x00", 2), 65),
                "more than 64 fields of unknown numbers"},
        Refused{"LongId", "\x12\x81\x02" + std::string(257, 'i'), "id has 257 bytes"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(WireScanTest, LimitsHoldForPackedNumbersAndForSingleOnes) {
  // OutputSelection.hidden_layers, outputs = 5.
  v1::EncodeRequest request;
  for (int i = 0; i < 5; ++i) request.mutable_outputs()->add_hidden_layers(300 + i);
  EXPECT_TRUE(Scan(EncodeSchema(), request.SerializeAsString()).ok());
  request.mutable_outputs()->add_hidden_layers(1);
  const absl::Status packed = Scan(EncodeSchema(), request.SerializeAsString());
  EXPECT_THAT(std::string(packed.message()), HasSubstr("hidden_layers has more than 5 elements"));
  const int number = v1::OutputSelection::kHiddenLayersFieldNumber;
  const std::string single = Repeated({static_cast<char>(number << 3), 1}, 6);
  const absl::Status singles = Scan(EncodeSchema(), absl::StrCat("\x2a\x0c", single));
  EXPECT_EQ(singles, packed);
}

TEST(WireScanTest, RepeatedMessagesAndStringsAreLimitedByDefault) {
  for (const char* field : {"\x2a", "\x32", "\x3a", "\x22"}) {  // inputs, outputs, raw, parameters
    const std::string element = std::string(field) + std::string(1, '\0');
    EXPECT_TRUE(Scan(InferSchema(), Repeated(element, 64)).ok());
    const absl::Status status = Scan(InferSchema(), Repeated(element, 65));
    EXPECT_THAT(std::string(status.message()), HasSubstr("has more than 64 elements"));
  }
}

TEST(WireScanTest, AnIdThatMayNotGoBackIsNotHandedOut) {
  WireSummary summary;
  EXPECT_FALSE(Scan(EncodeSchema(), "\x12\x81\x02" + std::string(257, 'i'), summary).ok());
  EXPECT_EQ(summary.id, "");
  EXPECT_TRUE(Scan(EncodeSchema(), "\x12\x02\xc3\x28", summary).ok()) << "left to the parser";
  EXPECT_EQ(summary.id, "");
  // Of a message that fails later, it is.
  EXPECT_FALSE(Scan(EncodeSchema(), "\x12\x01x\x38", summary).ok());
  EXPECT_EQ(summary.id, "x");
}

const WireSchema& AttendSchema() {
  static const WireSchema schema(*v1::AttendRequest::descriptor(), {.id_field = "id"});
  return schema;
}

TEST(WireScanTest, PackedNumbersOfFixedSizeAreWhole) {
  // AttendRequest.alibi = 26, AlibiPositions.slopes = 1.
  const std::string alibi = "\xd2\x01";
  for (int bytes = 0; bytes <= 12; ++bytes) {
    const std::string slopes = absl::StrCat("\x0a", std::string(1, static_cast<char>(bytes)),
                                            std::string(static_cast<size_t>(bytes), '\1'));
    const std::string message =
        absl::StrCat(alibi, std::string(1, static_cast<char>(slopes.size())), slopes);
    v1::AttendRequest parsed;
    EXPECT_EQ(parsed.ParseFromString(message), bytes % 4 == 0);
    EXPECT_EQ(Scan(AttendSchema(), message).ok(), bytes % 4 == 0) << bytes;
  }
}

TEST(WireScanTest, AnAttendRequestIsKnownInEveryKind) {
  v1::AttendRequest request;
  for (v1::Tensor* tensor : {request.mutable_query(), request.mutable_mask(),
                             request.mutable_multi_head()->mutable_output_bias(),
                             request.mutable_added()->mutable_learned()}) {
    tensor->add_shape(1);
    tensor->set_data(std::string(4, '\0'));
  }
  request.add_query_lengths(1);
  WireSummary summary;
  EXPECT_TRUE(Scan(AttendSchema(), request.SerializeAsString(), summary).ok());
  EXPECT_GE(summary.memory_bytes, static_cast<int64_t>(request.SpaceUsedLong()));
}

}  // namespace
}  // namespace attendant
