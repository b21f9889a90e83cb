// SPDX-License-Identifier: Apache-2.0
// Every way to ask wrongly gets a clear status, and the next request its answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>

#include "tests/server/in_process_server.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

struct BadInput {
  const char* name;
  std::function<void(v1::EncodeRequest&)> spoil;  // of HelloRequest
  grpc::StatusCode code;
  const char* message;  // a part of it
};

v1::TokenIds& Ids(v1::EncodeRequest& request) {
  return *request.mutable_sequences()->mutable_sequences(0)->mutable_ids();
}

void SetPadded(v1::EncodeRequest& request, int64_t batch, int64_t seq, int ids) {
  request.mutable_padded()->set_batch(batch);
  request.mutable_padded()->set_seq(seq);
  for (int i = 0; i < ids; ++i) request.mutable_padded()->add_token_ids(kHello);
}

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr grpc::StatusCode kInvalid = grpc::StatusCode::INVALID_ARGUMENT;

const BadInput kBadInputs[] = {
    {"UnknownModel", [](auto& r) { r.set_model("nobody"); }, grpc::StatusCode::NOT_FOUND,
     "'nobody'"},
    {"NoModel", [](auto& r) { r.clear_model(); }, grpc::StatusCode::NOT_FOUND, "''"},
    {"EndlessModelName", [](auto& r) { r.set_model(std::string(100000, 'x')); },
     grpc::StatusCode::NOT_FOUND, "..."},
    {"NulInModelName", [](auto& r) { r.set_model(std::string("tiny\0", 5)); },
     grpc::StatusCode::NOT_FOUND, "tiny\\x00"},
    {"NoInput", [](auto& r) { r.clear_sequences(); }, kInvalid, "neither sequences nor"},
    {"NoSequences", [](auto& r) { r.mutable_sequences()->Clear(); }, kInvalid, "no sequences"},
    {"NoContent", [](auto& r) { r.mutable_sequences()->add_sequences(); }, kInvalid,
     "sequence 1 has neither text nor a pair nor ids"},
    {"EmptyIds", [](auto& r) { Ids(r); }, kInvalid, "sequence 0: token_ids is empty"},
    {"IdTooLarge", [](auto& r) { Ids(r).add_token_ids(64); }, kInvalid,
     "token_ids[0] is 64, it must be from 0 to 63"},
    {"IdNegative", [](auto& r) { Ids(r).add_token_ids(-1); }, kInvalid, "token_ids[0] is -1"},
    {"SegmentTooLarge",
     [](auto& r) {
       Ids(r).add_token_ids(kHello);
       Ids(r).add_segment_ids(2);
     },
     kInvalid, "segment_ids[0] is 2, it must be from 0 to 1"},
    {"TooManySegments",
     [](auto& r) {
       Ids(r).add_token_ids(kHello);
       Ids(r).add_segment_ids(0);
       Ids(r).add_segment_ids(0);
     },
     kInvalid, "segment_ids has 2 values, token_ids has 1"},
    {"MaskTooShort",
     [](auto& r) {
       Ids(r).add_token_ids(kHello);
       Ids(r).add_token_ids(kHello);
       Ids(r).add_attention_mask(true);
     },
     kInvalid, "attention_mask has 1 values, token_ids has 2"},
    {"IdsTooLong",
     [](auto& r) {
       for (int i = 0; i < 65; ++i) Ids(r).add_token_ids(kHello);
     },
     kInvalid, "sequence 0 has 65 tokens, the limit is 64"},
    {"TextTooLong",
     [](auto& r) {
       std::string text;
       for (int i = 0; i < 40; ++i) text += "hello ";
       r.mutable_sequences()->mutable_sequences(0)->set_text(text);
       r.set_truncation(v1::TRUNCATION_NONE);
     },
     kInvalid, "42"},
    {"TooManySequences",
     [](auto& r) {
       for (int i = 0; i < 4096; ++i) r.mutable_sequences()->add_sequences();
     },
     kInvalid, "Sequences.sequences has more than 4096 elements"},
    {"PaddedCountDiffers", [](auto& r) { SetPadded(r, 2, 3, 5); }, kInvalid,
     "token_ids has 5 values, batch x seq is 2 x 3"},
    {"PaddedOverflows", [](auto& r) { SetPadded(r, 2, kHuge, 6); }, kInvalid,
     "2 x 9223372036854775807"},
    {"PaddedHugeBatch", [](auto& r) { SetPadded(r, kHuge, 2, 6); }, kInvalid, "padded.batch is"},
    {"PaddedNegative", [](auto& r) { SetPadded(r, -2, -3, 6); }, kInvalid, "padded.batch is -2"},
    {"PaddedNegativeSeq", [](auto& r) { SetPadded(r, 2, -3, 6); }, kInvalid, "2 x -3"},
    {"PaddedEmpty", [](auto& r) { SetPadded(r, 0, 0, 0); }, kInvalid, "padded.batch is 0"},
    {"PaddedNoSeq", [](auto& r) { SetPadded(r, 1, 0, 0); }, kInvalid, "1 x 0"},
    {"PaddedMaskDiffers",
     [](auto& r) {
       SetPadded(r, 1, 2, 2);
       r.mutable_padded()->add_attention_mask(true);
     },
     kInvalid, "padded.attention_mask has 1 values"},
    {"PaddedSegmentsDiffer",
     [](auto& r) {
       SetPadded(r, 1, 2, 2);
       r.mutable_padded()->add_segment_ids(0);
     },
     kInvalid, "padded.segment_ids has 1 values"},
    {"LongId", [](auto& r) { r.set_id(std::string(257, 'x')); }, kInvalid,
     "id has 257 bytes, the limit is 256"},
    {"PriorityTooHigh", [](auto& r) { r.set_priority(101); }, kInvalid, "priority is 101"},
    {"PriorityTooLow", [](auto& r) { r.set_priority(-101); }, kInvalid, "priority is -101"},
    {"DimsTooLarge", [](auto& r) { r.mutable_outputs()->mutable_pooled()->set_dims(17); }, kInvalid,
     "the embedding has 16 dimensions, it cannot be cut to 17"},
    {"DimsNegative", [](auto& r) { r.mutable_outputs()->mutable_pooled()->set_dims(-1); }, kInvalid,
     "it cannot be cut to -1"},
    {"UnknownPooling",
     [](auto& r) {
       r.mutable_outputs()->mutable_pooled()->set_pooling(static_cast<v1::Pooling>(99));
     },
     kInvalid, "pooling is 99"},
    {"UnknownDType", [](auto& r) { r.mutable_outputs()->set_dtype(static_cast<v1::DType>(-7)); },
     kInvalid, "dtype is -7"},
    {"UnknownTruncation", [](auto& r) { r.set_truncation(static_cast<v1::Truncation>(9)); },
     kInvalid, "truncation is 9"},
    {"ResponseTooLarge",
     [](auto& r) {
       r.mutable_outputs()->set_last_hidden_state(true);
       for (int i = 0; i < 20; ++i) r.mutable_sequences()->add_sequences()->set_text("hello");
     },
     kInvalid, "the limit is 2048"},
};

// One server for all: it must survive each.
class BadInputTest : public ::testing::TestWithParam<BadInput> {
 protected:
  static void SetUpTestSuite() {
    InProcessServer::Options options;
    options.flags.encode.max_response_bytes = 2048;
    server_ = std::make_unique<InProcessServer>(options);
    server_->AwaitReady();
  }
  static void TearDownTestSuite() { server_.reset(); }

  static inline std::unique_ptr<InProcessServer> server_;
};

TEST_P(BadInputTest, IsRefusedAndTheNextRequestAnswered) {
  v1::EncodeRequest request = HelloRequest();
  GetParam().spoil(request);
  v1::EncodeResponse response;
  const grpc::Status status = CallEncode(server_->encoder(), request, response);
  EXPECT_EQ(status.error_code(), GetParam().code) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr(GetParam().message));
  EXPECT_LE(status.error_message().size(), 1024u);
  EXPECT_TRUE(CallEncode(server_->encoder(), HelloRequest(), response).ok());
  EXPECT_EQ(response.sequences_size(), 1);
}

INSTANTIATE_TEST_SUITE_P(All, BadInputTest, ::testing::ValuesIn(kBadInputs),
                         [](const auto& input) { return input.param.name; });

}  // namespace
}  // namespace attendant
