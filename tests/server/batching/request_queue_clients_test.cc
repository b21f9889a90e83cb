// SPDX-License-Identifier: Apache-2.0
// How clients share a queue: their turns, and the room for others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/server/batching/request_queue_fixture.h"

namespace attendant {
namespace {

using testing::_;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

struct ClientCase {
  std::string name;
  std::vector<std::pair<uint64_t, std::vector<int64_t>>> requests;  // client, lengths
  std::vector<Items> batches;
};

class ClientTurnTest : public RequestQueueTest, public testing::WithParamInterface<ClientCase> {};

TEST_P(ClientTurnTest, TakesByTable) {
  for (const auto& [client, lens] : GetParam().requests) {
    client_ = client;
    Add(lens);
  }
  for (const Items& batch : GetParam().batches) EXPECT_EQ(Take(), batch);
  EXPECT_THAT(Take(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Table, ClientTurnTest,
    testing::Values(
        ClientCase{"AQuantumEach",
                   {{1, {10}}, {1, {10}}, {1, {10}}, {1, {10}}, {2, {10}}, {2, {10}}, {3, {10}}},
                   {{{1, 0}, {5, 0}, {7, 0}, {2, 0}}, {{6, 0}, {3, 0}, {4, 0}}}},
        ClientCase{"ShortRequestsUpToAQuantum",
                   {{1, {5}}, {1, {5}}, {1, {5}}, {1, {5}}, {2, {20}}, {2, {5}}},
                   {{{1, 0}, {2, 0}, {6, 0}, {3, 0}, {4, 0}}, {{5, 0}}}},
        ClientCase{"InOrderOfArrivalWithOneRequestEach",
                   {{4, {10}}, {3, {9}}, {2, {10}}, {1, {9}}},
                   {{{1, 0}, {2, 0}, {3, 0}, {4, 0}}}},
        ClientCase{"WholeRequestsAndTurnsWithoutAny",
                   {{1, {10, 10, 10}}, {1, {10}}, {2, {10}}, {2, {10}}, {2, {10}}},
                   {{{1, 0}, {1, 1}, {1, 2}, {3, 0}}, {{4, 0}, {5, 0}, {2, 0}}}},
        ClientCase{"ALargeRequestAmongThoseOfItsClient",
                   {{1, {10, 10, 10, 10, 10}}, {1, {10}}, {2, {10}}, {2, {10}}, {2, {10}}},
                   {{{1, 0}, {3, 0}, {2, 0}, {4, 0}}, {{1, 1}, {1, 2}, {1, 3}, {1, 4}}, {{5, 0}}}},
        ClientCase{"LongSequencesTakeTurnsToo",
                   {{1, {20}}, {1, {20}}, {1, {20}}, {2, {20}}},
                   {{{1, 0}, {4, 0}}, {{2, 0}, {3, 0}}}},
        ClientCase{"ShortOnesBehindLongOnesOfTheirClient",
                   {{1, {20}}, {1, {20}}, {1, {9}}, {1, {9}}, {2, {9}}, {2, {9}}},
                   {{{3, 0}, {4, 0}, {5, 0}, {6, 0}}, {{1, 0}, {2, 0}}}},
        ClientCase{"WhatDidNotFitKeepsItsClientsPlace",
                   {{1, {9}}, {2, {9}}, {3, {9}}, {4, {9}}, {5, {9}}, {4, {2}}, {5, {2}}},
                   {{
                        {1, 0},
                        {2, 0},
                        {3, 0},
                        {4, 0},
                        {6, 0},
                    },
                    {{5, 0}, {7, 0}}}}),
    [](const auto& test) { return test.param.name; });

TEST_F(RequestQueueTest, AClientThatComesLaterHasItsTurnNext) {
  client_ = 1;
  for (int i = 0; i < 9; ++i) Add({10});
  Take();
  client_ = 2;
  Add({10});
  EXPECT_THAT(Take(), ElementsAre(Pair(10, 0), Pair(5, 0), Pair(6, 0), Pair(7, 0)));
}

TEST_F(RequestQueueTest, TurnsGoByClientInEachPriorityAlone) {
  client_ = 1;
  for (int i = 0; i < 3; ++i) Add({10}, 1);
  client_ = 2;
  for (int i = 0; i < 3; ++i) Add({10}, 0);
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 0), Pair(2, 0), Pair(3, 0), Pair(4, 0)));
}

TEST_F(RequestQueueTest, TurnsOfTheOnlyClientDoNotKeepABatchFromFilling) {
  for (int64_t len : {1, 1, 1, 1, 7, 17}) Add({len});
  EXPECT_THAT(Take(), SizeIs(5));
  for (int64_t len : {10, 10, 7, 2, 1}) Add({len});
  EXPECT_THAT(Take(), ElementsAre(Pair(6, 0), Pair(7, 0), Pair(8, 0), Pair(10, 0), Pair(11, 0)));
}

TEST_F(RequestQueueTest, ARequestThatHasBegunGoesOnFirst) {
  client_ = 1;
  Add({5, 5, 5, 5, 5, 5});
  client_ = 2;
  Add({5});
  Add({5});
  Take();
  EXPECT_THAT(Take(), ElementsAre(Pair(1, 5), Pair(2, 0), Pair(3, 0)));
}

TEST_F(RequestQueueTest, OneRequestThatDidNotFitKeepsItsClientsPlace) {
  client_ = 1;
  for (int i = 0; i < 4; ++i) Add({10, 10, 10, 9});
  EXPECT_THAT(Take(), Each(Pair(1, _)));
  client_ = 2;
  Add({5});
  EXPECT_THAT(Take(), Each(Pair(2, _)));
  EXPECT_EQ(Take()[0], (std::pair<RequestId, size_t>(5, 0)));
}

TEST_F(RequestQueueTest, ALongSequenceThatNeverFitsBesideOthersGoesWhenItIsOverdue) {
  client_ = 2;
  const QueuedRequest* other = &Add({30});
  client_ = 1;
  const QueuedRequest* own = &Add({10});
  const QueuedRequest& waiting = Add({11});
  int64_t ms = 3;
  for (; waiting.queued && ms < 200; ++ms) {
    now_ = At(ms);
    client_ = 2;
    if (!other->queued) other = &Add({30});
    client_ = 1;
    if (!own->queued) own = &Add({10});
    Take(now_);
  }
  EXPECT_GE(ms, 103);
  EXPECT_LE(ms, 103 + 4);
}

// Batches with room for many sequences.
class ManySequencesOfClientsTest : public RequestQueueTest {
 protected:
  ManySequencesOfClientsTest() : RequestQueueTest(40) {}
};

TEST_F(ManySequencesOfClientsTest, WhatDidNotFitKeepsItsPlaceThoughItsClientsTurnIsUsedUp) {
  client_ = 1;
  Add({10, 10, 5});
  client_ = 2;
  for (const int64_t len : {6, 10, 4, 1}) Add({len});
  client_ = 3;
  Add({1});
  EXPECT_THAT(Take(),
              ElementsAre(Pair(1, 0), Pair(1, 1), Pair(1, 2), Pair(2, 0), Pair(4, 0), Pair(6, 0)));
  EXPECT_THAT(Take(), ElementsAre(Pair(3, 0), Pair(5, 0)));
}

// Clients that always have requests in the queue, drawn from these, and their parts of the tokens
// of all batches.
using Kind = std::vector<std::vector<int64_t>>;
class ClientShareTest : public RequestQueueTest {
 protected:
  std::vector<double> Shares(const std::vector<Kind>& kinds) {
    std::mt19937 random(1);
    std::vector<int64_t> waiting(kinds.size()), taken(kinds.size());
    int64_t all = 0;
    for (int batch = 0; batch < 4000; ++batch) {
      for (client_ = 0; client_ < kinds.size(); ++client_) {
        const Kind& kind = kinds[client_];
        while (waiting[client_] < 120)
          waiting[client_] += Add(kind[random() % kind.size()]).tokens();
      }
      for (const auto& [id, sequence] : Take()) {
        const QueuedRequest& request = requests_[id - 1];
        const int64_t tokens = request.sequence_tokens(sequence);
        waiting[request.client] -= tokens;
        taken[request.client] += tokens;
        all += tokens;
      }
    }
    std::vector<double> shares;
    for (const int64_t tokens : taken) {
      shares.push_back(static_cast<double>(tokens) / static_cast<double>(all));
    }
    return shares;
  }
};

TEST_F(ClientShareTest, ClientsGetAsManyTokensEachWhateverTheirRequests) {
  const std::vector<double> shares =
      Shares({{{2}, {3}, {9}}, {{10, 10, 10}, {10}}, {{10, 5, 5, 5, 10, 7, 9, 10}, {4}}});
  EXPECT_THAT(shares, Each(DoubleNear(1.0 / 3, 0.01)));
}

// Batches of short sequences and those with long ones take turns, whoever sent them.
TEST_F(ClientShareTest, LongSequencesTakeNoMoreThanShortOnesLeave) {
  const std::vector<double> shares =
      Shares({{{2}, {3}, {9}}, {{25}, {10, 10, 10}, {40}}, {{10, 30, 5, 5, 5, 10, 7}, {4}}});
  EXPECT_THAT(shares, Each(testing::Ge(0.75 / 3)));
}

TEST_F(RequestQueueTest, RoomIsLeftForOtherClients) {
  client_ = 1;
  Add({40, 40, 40, 40});
  EXPECT_TRUE(queue_.CheckRoom(1, 17).ok()) << "177 of 200: 23 stay free";
  const absl::Status full = queue_.CheckRoom(1, 18);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()),
              HasSubstr("queue full for this client: 178 tokens in 2 requests, this one's 18 "
                        "included, beside 22 tokens and 7 requests that stay free"));
  EXPECT_TRUE(queue_.CheckRoom(2, 40).ok());
}

TEST_F(RequestQueueTest, AClientsPartCountsInEveryPriority) {
  client_ = 1;
  Add({40, 40, 40, 40}, 1);
  client_ = 2;
  Add({1}, 0);
  EXPECT_FALSE(queue_.CheckRoom(1, 18).ok());
  EXPECT_TRUE(queue_.CheckRoom(2, 18).ok());
}

TEST_F(RequestQueueTest, RoomIsLeftForTheRequestsOfOtherClients) {
  client_ = 1;
  for (int i = 0; i < 7; ++i) Add({1}, i % 2);
  EXPECT_TRUE(queue_.CheckRoom(1, 1).ok());
  Add({1});
  EXPECT_FALSE(queue_.CheckRoom(1, 1).ok());
  EXPECT_TRUE(queue_.CheckRoom(2, 1).ok());
}

TEST_F(RequestQueueTest, AClientWithoutRequestsMayFillTheQueue) {
  EXPECT_TRUE(queue_.CheckRoom(1, 200).ok());
}

TEST_F(RequestQueueTest, CountsWhatComesBeforeARequestByClients) {
  client_ = 1;
  for (int i = 0; i < 4; ++i) Add({10, 10});
  client_ = 2;
  Add({5});
  EXPECT_EQ(queue_.AheadAt(0, 3, 10).tokens, 20 + 5) << "a turn each: whole requests";
  EXPECT_EQ(queue_.AheadAt(0, 3, 10).sequences, 3);
  EXPECT_EQ(queue_.AheadAt(0, 2, 10).tokens, 20 + 5);
  EXPECT_EQ(queue_.AheadAt(0, 1, 10).tokens, 80 + 5) << "behind its own";
  EXPECT_EQ(queue_.AheadAt(0, 3, 45).tokens, 60 + 5) << "five turns";
}

TEST_F(RequestQueueTest, CountsOtherClientsAsLongAsTheTurnsLast) {
  client_ = 1;
  for (int i = 0; i < 3; ++i) Add({10});
  client_ = 2;
  for (int i = 0; i < 2; ++i) Add({8});
  EXPECT_EQ(queue_.AheadAt(0, 2, 10).tokens, 16 + 20) << "two turns";
}

}  // namespace
}  // namespace attendant
