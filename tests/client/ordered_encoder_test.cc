// SPDX-License-Identifier: Apache-2.0
#include "client/ordered_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/client/fake_server.h"

namespace attendant::client {
namespace {

using ::testing::ElementsAre;

absl::Status IgnoreResults(const EncodeRequest&, const EncodeResult&) { return absl::OkStatus(); }

class OrderedEncoderTest : public testing::Test {
 protected:
  OrderedEncoderTest() : client_(*Client::Connect({.target = server_.address()})) {}

  OrderedEncoder Encoder(const OrderedEncoder::Limits& limits, OrderedEncoder::Sink sink) {
    return {*client_, {.model = "toy", .pooled = PooledOptions{}}, limits, std::move(sink)};
  }

  FakeServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(OrderedEncoderTest, ARequestHasAtMostSoManyBytes) {
  std::vector<size_t> sizes;
  OrderedEncoder encoder = Encoder({.max_sequences = 10, .max_bytes = 100},
                                   [&](const EncodeRequest& request, const auto&) {
                                     sizes.push_back(request.sequences.size());
                                     return absl::OkStatus();
                                   });
  // 40 + 40 fit, a third does not; a text above the limit goes alone.
  for (const size_t bytes : {40u, 40u, 40u, 40u, 300u, 40u, 40u, 20u, 1u}) {
    ASSERT_TRUE(encoder.Add(std::string(bytes, 'x')).ok());
  }
  ASSERT_TRUE(encoder.Finish().ok());
  EXPECT_THAT(sizes, ElementsAre(2, 2, 1, 3, 1));
  // Ids have four bytes.
  sizes.clear();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(encoder.Add(TokenIds{.token_ids = std::vector<int32_t>(10, 5)}).ok());
  }
  ASSERT_TRUE(encoder.Finish().ok());
  EXPECT_THAT(sizes, ElementsAre(2, 2));
}

TEST_F(OrderedEncoderTest, AnErrorNamesTheInputsOfItsRequest) {
  OrderedEncoder encoder = Encoder({.max_sequences = 3, .max_concurrency = 1},
                                   [&](const EncodeRequest&, const EncodeResult&) {
                                     server_.FailNext(1, absl::InternalError("broken"));
                                     return absl::OkStatus();
                                   });
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(encoder.Add("text").ok());
  EXPECT_EQ(encoder.Finish(), absl::InternalError("broken (in the request of inputs 3 to 4)"));
}

TEST_F(OrderedEncoderTest, AnErrorOfTheSinkEndsTheWork) {
  OrderedEncoder encoder = Encoder(
      {.max_sequences = 1, .max_concurrency = 1},
      [](const EncodeRequest&, const EncodeResult&) { return absl::AbortedError("enough"); });
  ASSERT_TRUE(encoder.Add("a").ok());
  ASSERT_TRUE(encoder.Add("b").ok());
  EXPECT_EQ(encoder.Finish(), absl::AbortedError("enough"));
}

TEST_F(OrderedEncoderTest, AnErrorCancelsTheRequestsBehindIt) {
  server_.Stall();
  OrderedEncoder encoder = Encoder({.max_sequences = 1, .max_concurrency = 4}, IgnoreResults);
  for (const char* text : {"\xff", "b", "c", "d"}) ASSERT_TRUE(encoder.Add(text).ok());
  ASSERT_TRUE(server_.AwaitEncodes(2));  // the first is not sent, and the last waits for Finish
  EXPECT_TRUE(absl::IsInvalidArgument(encoder.Finish()));
  EXPECT_TRUE(server_.AwaitCancelled(2));
}

TEST_F(OrderedEncoderTest, ItsEndCancelsWhatRuns) {
  server_.Stall();
  {
    OrderedEncoder encoder = Encoder({.max_sequences = 1}, IgnoreResults);
    for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(encoder.Add(text).ok());
    ASSERT_TRUE(server_.AwaitEncodes(2));
  }
  EXPECT_TRUE(server_.AwaitCancelled(2));
}

}  // namespace
}  // namespace attendant::client
