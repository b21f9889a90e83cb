// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/export/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "tests/server/metrics/exposition.h"

namespace attendant {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

constexpr absl::Duration kLong = absl::Minutes(1);

// A collector whose answers the test chooses. Thread-safe.
class FakeCollector {
 public:
  using Answers = std::function<absl::StatusOr<SpanTransport::Answer>(int attempt)>;

  absl::StatusOr<SpanTransport::Answer> Post(absl::string_view json) {
    const nlohmann::json request = nlohmann::json::parse(json.begin(), json.end());
    Answers answers;
    int attempt = 0;
    {
      absl::MutexLock lock(&mutex_);
      std::vector<std::string>& names = posts_.emplace_back();
      for (const auto& span : request["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
        names.push_back(span["name"]);
      }
      attempt = static_cast<int>(posts_.size());
      mutex_.Await(absl::Condition(&open_));
      answers = answers_;
    }
    return answers ? answers(attempt) : SpanTransport::Answer{.code = 200};
  }
  void SetAnswers(Answers answers) {
    absl::MutexLock lock(&mutex_);
    answers_ = std::move(answers);
  }
  // Posts wait until it opens.
  void SetOpen(bool open) {
    absl::MutexLock lock(&mutex_);
    open_ = open;
  }
  void AwaitPosts(size_t number) {
    const auto reached = [this, number]()
                             ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return posts_.size() >= number; };
    absl::MutexLock lock(&mutex_);
    ASSERT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&reached), kLong));
  }
  // The names of the spans of each post.
  std::vector<std::vector<std::string>> posts() {
    absl::MutexLock lock(&mutex_);
    return posts_;
  }

 private:
  absl::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  Answers answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<std::string>> posts_ ABSL_GUARDED_BY(mutex_);
};

class FakeTransport final : public SpanTransport {
 public:
  explicit FakeTransport(FakeCollector& collector) : collector_(collector) {}
  absl::StatusOr<Answer> Post(absl::string_view json, absl::Duration timeout) override {
    EXPECT_GT(timeout, absl::ZeroDuration());
    return collector_.Post(json);
  }
  void Cancel() override { collector_.SetOpen(true); }

 private:
  FakeCollector& collector_;
};

class TracerTest : public testing::Test {
 protected:
  // Batches of four, which go at once; the first retry after a millisecond.
  static Tracer::Options Options() {
    return {.max_queued_spans = 16,
            .max_batch_spans = 4,
            .delay = absl::ZeroDuration(),
            .retry_delay = absl::Milliseconds(1)};
  }

  void Start(Tracer::Options options = Options()) {
    options.on_change = [this](const absl::Status& status) {
      absl::MutexLock lock(&mutex_);
      changes_.push_back(status.code());
    };
    tracer_ = std::make_unique<Tracer>(std::move(options),
                                       std::make_unique<FakeTransport>(collector_), metrics_);
  }
  // Requests of one span each, with these names.
  void Add(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      RequestTrace request;
      request.span = 1;
      request.method = name;
      tracer_->Add(std::move(request));
    }
  }
  double Metric(const std::string& name, const std::string& result) {
    return Exposition::Parse(metrics_.Scrape())->Value(name, {{"result", result}});
  }
  double Spans(const std::string& result) { return Metric("attendant_spans_total", result); }
  double Exports(const std::string& result) {
    return Metric("attendant_span_exports_total", result);
  }
  std::vector<absl::StatusCode> changes() {
    absl::MutexLock lock(&mutex_);
    return changes_;
  }
  void AwaitChanges(size_t number) {
    const auto reached = [this, number]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return changes_.size() >= number;
    };
    absl::MutexLock lock(&mutex_);
    ASSERT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&reached), kLong));
  }
  static absl::StatusOr<SpanTransport::Answer> Code(int code) {
    return SpanTransport::Answer{.code = code};
  }

  ServerMetrics metrics_{"1.2.3"};
  FakeCollector collector_;
  absl::Mutex mutex_;
  std::vector<absl::StatusCode> changes_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Tracer> tracer_;
};

TEST_F(TracerTest, SendsWhatIsAdded) {
  Start();
  Add({"a"});
  collector_.AwaitPosts(1);
  EXPECT_TRUE(tracer_->Flush(kLong));
  EXPECT_THAT(collector_.posts(), ElementsAre(ElementsAre("a")));
  EXPECT_EQ(Spans("exported"), 1);
  EXPECT_EQ(Exports("ok"), 1);
  EXPECT_EQ(Spans("failed") + Spans("dropped") + Exports("failed"), 0);
}

TEST_F(TracerTest, ABatchGoesWhenItIsFull) {
  Tracer::Options options = Options();
  options.delay = absl::InfiniteDuration();
  Start(std::move(options));
  Add({"a", "b", "c"});
  EXPECT_THAT(collector_.posts(), SizeIs(0));
  Add({"d"});
  collector_.AwaitPosts(1);
  EXPECT_THAT(collector_.posts(), ElementsAre(ElementsAre("a", "b", "c", "d")));
}

TEST_F(TracerTest, AFlushSendsAllThatWaits) {
  Tracer::Options options = Options();
  options.delay = absl::InfiniteDuration();
  Start(std::move(options));
  collector_.SetOpen(false);
  Add({"a", "b", "c", "d"});
  collector_.AwaitPosts(1);  // which waits
  Add({"e", "f", "g", "h", "i"});
  std::thread flush([this] { EXPECT_TRUE(tracer_->Flush(kLong)); });
  collector_.SetOpen(true);
  flush.join();
  EXPECT_THAT(collector_.posts(), ElementsAre(SizeIs(4), SizeIs(4), SizeIs(1)));
  EXPECT_EQ(Spans("exported"), 9);
}

TEST_F(TracerTest, AFlushHasAnEnd) {
  Start();
  collector_.SetOpen(false);
  Add({"a"});
  collector_.AwaitPosts(1);
  const absl::Time start = absl::Now();
  EXPECT_FALSE(tracer_->Flush(absl::Milliseconds(20)));
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

TEST_F(TracerTest, TheQueueIsBounded) {
  Start();
  collector_.SetOpen(false);
  Add({"first"});
  collector_.AwaitPosts(1);
  for (int i = 0; i < 100; ++i) Add({"next"});
  EXPECT_EQ(Spans("dropped"), 84) << "16 wait";
  collector_.SetOpen(true);
  EXPECT_TRUE(tracer_->Flush(kLong));
  EXPECT_EQ(Spans("exported"), 17);
}

TEST_F(TracerTest, SendsAgainWhatMayBeSentAgain) {
  collector_.SetAnswers([](int attempt) -> absl::StatusOr<SpanTransport::Answer> {
    if (attempt == 1) return Code(503);
    if (attempt == 2) return absl::UnavailableError("no collector");
    return Code(202);
  });
  Start();
  Add({"a"});
  collector_.AwaitPosts(3);
  EXPECT_TRUE(tracer_->Flush(kLong));
  EXPECT_THAT(collector_.posts(),
              ElementsAre(ElementsAre("a"), ElementsAre("a"), ElementsAre("a")));
  EXPECT_EQ(Spans("exported"), 1);
  EXPECT_EQ(Spans("failed"), 0);
  EXPECT_EQ(Exports("failed"), 2);
  EXPECT_EQ(Exports("ok"), 1);
  EXPECT_THAT(changes(), ElementsAre(absl::StatusCode::kUnavailable, absl::StatusCode::kOk));
}

TEST_F(TracerTest, GivesUpWhatIsRefused) {
  collector_.SetAnswers([](int attempt) { return Code(attempt == 1 ? 400 : 200); });
  Start();
  Add({"a"});
  collector_.AwaitPosts(1);
  Add({"b"});
  collector_.AwaitPosts(2);
  tracer_->Flush(kLong);
  EXPECT_THAT(collector_.posts(), ElementsAre(ElementsAre("a"), ElementsAre("b")));
  EXPECT_EQ(Spans("failed"), 1);
  EXPECT_EQ(Spans("exported"), 1);
}

TEST_F(TracerTest, GivesUpInTheEnd) {
  collector_.SetAnswers([](int) { return Code(503); });
  Start();
  Add({"a"});
  collector_.AwaitPosts(6);
  tracer_->Flush(kLong);
  EXPECT_THAT(collector_.posts(), SizeIs(6));
  EXPECT_THAT(collector_.posts(), Each(ElementsAre("a")));
  EXPECT_EQ(Spans("failed"), 1);
}

TEST_F(TracerTest, WaitsAsLongAsTheCollectorAsks) {
  collector_.SetAnswers([](int) -> absl::StatusOr<SpanTransport::Answer> {
    return SpanTransport::Answer{.code = 429, .retry_after = "300"};
  });
  Start();
  Add({"a"});
  collector_.AwaitPosts(1);
  // A flush that finds it waiting sends once more at once. The next time would be after its end.
  EXPECT_FALSE(tracer_->Flush(absl::Seconds(30)));
  EXPECT_THAT(collector_.posts(), SizeIs(testing::Le(2)));
  EXPECT_EQ(Spans("failed"), 1);
}

// A flush that begins before the thread waits gives the batch up: the next round tries again.
TEST_F(TracerTest, AFlushSendsAtOnceWhatWaitsForTheNextAttempt) {
  constexpr int kRounds = 20;
  bool sent = false;
  for (int round = 0; round < kRounds && !sent; ++round) {
    tracer_.reset();
    const int first = static_cast<int>(collector_.posts().size()) + 1;
    collector_.SetAnswers([first](int attempt) -> absl::StatusOr<SpanTransport::Answer> {
      if (attempt > first) return Code(200);
      return SpanTransport::Answer{.code = 503, .retry_after = "300"};
    });
    const size_t told = changes().size();
    Start();
    Add({"a"});
    AwaitChanges(told + 1);
    absl::SleepFor(absl::Milliseconds(round));  // later each time, until its thread waits
    sent = tracer_->Flush(absl::Seconds(1));
  }
  EXPECT_TRUE(sent);
}

TEST_F(TracerTest, CountsWhatACollectorRejects) {
  collector_.SetAnswers([](int) -> absl::StatusOr<SpanTransport::Answer> {
    return SpanTransport::Answer{.code = 200,
                                 .body = R"({"partialSuccess":{"rejectedSpans":"3"}})"};
  });
  Tracer::Options options = Options();
  options.delay = absl::InfiniteDuration();
  Start(std::move(options));
  Add({"a", "b", "c", "d"});
  collector_.AwaitPosts(1);
  tracer_->Flush(kLong);
  EXPECT_THAT(collector_.posts(), SizeIs(1)) << "it is not sent again";
  EXPECT_EQ(Spans("failed"), 3);
  EXPECT_EQ(Spans("exported"), 1);
}

TEST_F(TracerTest, EndsWhileItSends) {
  Start();
  collector_.SetOpen(false);
  Add({"a", "b", "c", "d", "e"});
  collector_.AwaitPosts(1);
  tracer_.reset();
  EXPECT_THAT(collector_.posts(), SizeIs(1));
}

TEST_F(TracerTest, EndsWhileItWaitsForTheNextAttempt) {
  collector_.SetAnswers([](int) -> absl::StatusOr<SpanTransport::Answer> {
    return SpanTransport::Answer{.code = 503, .retry_after = "300"};
  });
  Start();
  Add({"a"});
  collector_.AwaitPosts(1);
  tracer_.reset();
  EXPECT_THAT(collector_.posts(), SizeIs(1));
}

TEST_F(TracerTest, ManyThreadsAdd) {
  constexpr int kThreads = 4, kRequests = 500;
  Start();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kRequests; ++i) Add({"a"});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(tracer_->Flush(kLong));
  EXPECT_EQ(Spans("exported") + Spans("dropped"), kThreads * kRequests);
}

TEST_F(TracerTest, AnOpenSpanAddsItselfAtItsEnd) {
  Start();
  RequestTrace stream;
  stream.method = "stream";
  stream.arrival = SteadyNow();
  auto span = std::make_unique<OpenSpan>(*tracer_, std::move(stream));
  EXPECT_TRUE(tracer_->Flush(kLong));
  EXPECT_THAT(collector_.posts(), SizeIs(0));
  span.reset();
  EXPECT_TRUE(tracer_->Flush(kLong));
  EXPECT_THAT(collector_.posts(), ElementsAre(ElementsAre("stream")));
}

}  // namespace
}  // namespace attendant
