// SPDX-License-Identifier: Apache-2.0
// attendant load against a server in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/command.h"
#include "client/cli/load/load_setup.h"
#include "tests/client/cli/command_fixture.h"

namespace attendant::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class LoadCommandTest : public CommandTest {};

TEST_F(LoadCommandTest, AByteOrderMarkIsNoText) {
  const std::string file = WriteFile("bom.txt", "\xEF\xBB\xBFone\n");
  EXPECT_EQ(Run({"load", "--texts", file, "--requests=1", "--warmup=0"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("bom.txt, 3 bytes"));
}

TEST_F(LoadCommandTest, LoadsInAClosedLoop) {
  EXPECT_EQ(Run({"load", "--requests=200", "--warmup=0", "--connections=3", "--concurrency=2",
                 "--batch=2", "--lengths=uniform:1:100", "--json"}),
            0);
  const json report = OutputLines().at(0);
  EXPECT_EQ(report["requests"],
            json({{"ok", 200}, {"failed", 0}, {"cut_off", 0}, {"not_sent", 0}}));
  EXPECT_GT(report["tokens_per_s"], report["sequences_per_s"]);
  EXPECT_NEAR(report["sequences_per_s"], 2 * report["requests_per_s"].get<double>(), 1e-6);
  EXPECT_GT(report["latency_s"]["p50"], 0);
  EXPECT_GE(report["latency_s"]["max"], report["latency_s"]["p99"]);
  EXPECT_DOUBLE_EQ(report["server_mean_s"]["queue"], 100e-6);
  EXPECT_EQ(server_.encode_requests().size(), 200);
  EXPECT_EQ(server_.num_peers(), 3);
  for (const v1::EncodeRequest& request : server_.encode_requests()) {
    for (const v1::Sequence& sequence : request.sequences().sequences()) {
      ASSERT_LE(sequence.ids().token_ids_size(), 64);  // the model's limit
      for (int32_t id : sequence.ids().token_ids()) ASSERT_LT(id, 1000);
    }
  }
}

TEST(LoadSetupTest, TellsWhetherIdsOrWordsAreSent) {
  const LoadSetup setup;
  EXPECT_THAT(setup.DescribePayload(false), HasSubstr("1 sequence per request, random ids, "));
  EXPECT_THAT(setup.DescribePayload(true), HasSubstr("1 sequence per request, random words, "));
}

TEST_F(LoadCommandTest, LoadWakesAnIdleModel) {
  server_.SetIdle();
  EXPECT_EQ(Run({"load", "--requests=20", "--warmup=0", "--lengths=fixed:9"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("20 ok, 0 failed"));
  EXPECT_EQ(server_.encode_requests().back().sequences().sequences(0).ids().token_ids_size(), 9);
}

TEST_F(LoadCommandTest, LoadTakesTheModelsNewestVersion) {
  server_.SetModels({"toy", "toy"});
  EXPECT_EQ(Run({"load", "--requests=20", "--warmup=0"}), 0) << err_;
}

TEST_F(LoadCommandTest, LoadNamesTheVersionThatItIsGiven) {
  server_.SetModels({"toy", "toy"});
  server_.SetIdle();
  EXPECT_EQ(Run({"load", "--requests=20", "--warmup=0", "--model_version=1", "--json"}), 0) << err_;
  EXPECT_EQ(OutputLines().at(0)["model_version"], 1);
  for (const v1::EncodeRequest& request : server_.encode_requests()) {
    EXPECT_EQ(request.model_version(), "1");
  }
  EXPECT_EQ(Run({"load", "--requests=20", "--warmup=0", "--model_version=3"}), 1);
  EXPECT_THAT(err_, HasSubstr("of version 3"));
}

TEST_F(LoadCommandTest, LoadSaysWhichVersionDoesNotServe) {
  server_.SetModels({"slow", "slow"});
  EXPECT_EQ(Run({"load", "--model=slow", "--requests=20"}), kExitNoAnswer);
  EXPECT_THAT(err_, HasSubstr("version 2 of the model slow is loading"));
}

TEST_F(LoadCommandTest, LoadRefusesAVersionThatRequestsCannotName) {
  for (const char* protocol :
       {"tei", "tei_http", "tei_rerank", "openai", "cohere", "cohere_rerank"}) {
    EXPECT_EQ(
        Run({"load", absl::StrCat("--protocol=", protocol), "--model=toy", "--model_version=1"}),
        2);
    EXPECT_THAT(err_, HasSubstr(absl::StrCat("--model_version: a request of --protocol ", protocol,
                                             " names no version")));
  }
  EXPECT_EQ(Run({"load", "--model_version=-1"}), 2);
}

TEST_F(LoadCommandTest, RequestsMayHaveNoDeadline) {
  EXPECT_EQ(Run({"load", "--requests=20", "--warmup=0", "--timeout=inf"}), 0);
  EXPECT_THAT(out_, HasSubstr("20 ok, 0 failed"));
}

TEST_F(LoadCommandTest, LoadsInAnOpenLoop) {
  EXPECT_EQ(Run({"load", "--rate=500", "--requests=100", "--warmup=0", "--output=hidden"}), 0);
  EXPECT_THAT(out_, HasSubstr("open loop, 500 requests/s"));
  EXPECT_THAT(out_, HasSubstr("100 ok, 0 failed"));
  EXPECT_TRUE(server_.encode_requests().at(0).outputs().last_hidden_state());
}

TEST_F(LoadCommandTest, LoadsTexts) {
  const std::string file = WriteFile("load.txt", "one\ntwo\n\nthree\n");
  EXPECT_EQ(Run({"load", "--texts", file, "--requests=6", "--warmup=0", "--concurrency=1"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("3 texts of "), HasSubstr("load.txt, 11 bytes")));
  std::multiset<std::string> sent;
  for (const v1::EncodeRequest& request : server_.encode_requests()) {
    sent.insert(request.sequences().sequences(0).text());
  }
  EXPECT_THAT(sent, testing::ElementsAre("one", "one", "three", "three", "two", "two"));
}

TEST_F(LoadCommandTest, LoadCountsErrorsAndGoesOn) {
  server_.FailNext(10, absl::ResourceExhaustedError("the queue is full"));
  EXPECT_EQ(Run({"load", "--requests=50", "--warmup=0", "--json"}), 0);
  const json report = OutputLines().at(0);
  EXPECT_EQ(report["requests"]["ok"], 40);
  EXPECT_EQ(report["requests"]["failed"], 10);
  EXPECT_EQ(report["errors"]["RESOURCE_EXHAUSTED"]["first_message"], "the queue is full");

  server_.FailNext(1000, absl::InternalError("broken"));
  EXPECT_EQ(Run({"load", "--requests=50", "--warmup=0"}), 1);
}

// No answer is what a user waits for and tries again; an error beside it is not.
TEST_F(LoadCommandTest, LoadTellsNoAnswerFromErrors) {
  const std::vector<std::string> load = {"load", "--requests=2", "--warmup=0", "--concurrency=1"};
  server_.FailNext(2, absl::DeadlineExceededError("late"));
  EXPECT_EQ(Run(load), 3);
  server_.FailNext(1, absl::DeadlineExceededError("late"));
  server_.FailNext(1, absl::InternalError("broken"));
  EXPECT_EQ(Run(load), 1);
}

TEST_F(LoadCommandTest, LoadsKserve) {
  EXPECT_EQ(Run({"load", "--protocol=kserve", "--model=toy.ids", "--requests=40", "--warmup=0",
                 "--batch=4", "--lengths=fixed:10", "--json"}),
            0);
  const json report = OutputLines().at(0);
  EXPECT_EQ(report["requests"]["ok"], 40);
  EXPECT_NEAR(report["tokens_per_s"], 40 * report["requests_per_s"].get<double>(), 1e-6);
  EXPECT_TRUE(report["server_mean_s"].is_null());
  const inference::ModelInferRequest sent = server_.infer_requests().at(0);
  EXPECT_EQ(sent.inputs(0).shape(0), 4);
  EXPECT_EQ(sent.inputs(0).shape(1), 10);
  EXPECT_EQ(Run({"load", "--protocol=kserve", "--model=toy.ids", "--batch=9"}), 2);
}

TEST_F(LoadCommandTest, LoadSaysWhichProtocolsNeedAModel) {
  for (const char* protocol : {"kserve", "kserve_http", "openai", "cohere", "cohere_rerank"}) {
    EXPECT_EQ(Run({"load", absl::StrCat("--protocol=", protocol)}), 2);
    EXPECT_THAT(err_, HasSubstr(absl::StrCat("--protocol ", protocol, " needs a --model")));
  }
  EXPECT_EQ(Run({"load", "--protocol=kserve_http", "--model=toy", "--streaming"}), 2);
  EXPECT_THAT(err_, HasSubstr("--streaming: --protocol kserve_http has no streams"));
  EXPECT_EQ(Run({"load", "--protocol=kserve_http", "--model=toy", "--tensors=xml"}), 2);
}

TEST_F(LoadCommandTest, LoadArrivesAsItIsTold) {
  for (const char* arrivals : {"constant", "bursts:5"}) {
    EXPECT_EQ(Run({"load", "--rate=500", "--requests=50", "--warmup=0",
                   absl::StrCat("--arrivals=", arrivals)}),
              0);
    EXPECT_THAT(out_, HasSubstr("50 ok, 0 failed"));
  }
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--arrivals=constant"},
                                             {"--max_outstanding=5"},
                                             {"--rate=5", "--concurrency=2"},
                                             {"--rate=5", "--speed=2"}}) {
    std::vector<std::string> load = {"load", "--requests=1", "--warmup=0"};
    load.insert(load.end(), flags.begin(), flags.end());
    EXPECT_EQ(Run(load), 2) << flags.back();
    EXPECT_THAT(err_, HasSubstr(flags.back().substr(0, flags.back().find('='))));
  }
  EXPECT_EQ(Run({"load", "--rate=5", "--arrivals=bursts:0"}), 2);
  EXPECT_EQ(Run({"load", "--rate=5", "--arrivals=never"}), 2);
}

TEST_F(LoadCommandTest, LoadReplaysATrace) {
  const std::string trace = WriteFile("trace.jsonl", R"({"timestamp": 40, "input_length": 7}
{"timestamp": 0, "text_input": "abc"}
)");
  EXPECT_EQ(Run({"load", "--replay", trace, "--warmup=0", "--speed=2"}), 0);
  EXPECT_THAT(out_, HasSubstr("2 ok, 0 failed"));
  std::set<std::string> sent;
  for (const v1::EncodeRequest& request : server_.encode_requests()) {
    const v1::Sequence& sequence = request.sequences().sequences(0);
    sent.insert(sequence.has_ids() ? absl::StrCat(sequence.ids().token_ids_size())
                                   : sequence.text());
  }
  EXPECT_EQ(sent, (std::set<std::string>{"7", "abc"}));
  EXPECT_EQ(Run({"load", "--replay", trace}), 2);  // shorter than the warm-up
  EXPECT_EQ(Run({"load", "--replay", trace, "--rate=5"}), 2);
  EXPECT_EQ(Run({"load", "--replay=/nonexistent.jsonl"}), 2);
}

TEST_F(LoadCommandTest, LoadFailsByThreshold) {
  const std::vector<std::string> load = {"load", "--requests=20", "--warmup=0"};
  const auto fail_if = [&](const std::string& condition) {
    std::vector<std::string> args = load;
    args.push_back("--fail_if=" + condition);
    return Run(args);
  };
  EXPECT_EQ(fail_if("error_rate>0"), 0);
  EXPECT_EQ(fail_if("requests_per_s>0"), 5);
  EXPECT_THAT(err_, HasSubstr("--fail_if requests_per_s>0: requests_per_s is "));
  EXPECT_EQ(fail_if("p99"), 2);
  server_.FailNext(1, absl::InternalError("broken"));
  EXPECT_EQ(fail_if("error_rate>1%"), 5);
  EXPECT_EQ(Run({"load", "--find_max"}), 2);
  EXPECT_EQ(Run({"load", "--find_max", "--slo=p99=50ms", "--requests=9"}), 2);
  EXPECT_EQ(Run({"load", "--slo=p99=50ms"}), 2);
}

TEST_F(LoadCommandTest, LoadSweepsOverRatesAndWritesAPage) {
  const std::string page = folder_ / "sweep.html";
  EXPECT_EQ(
      Run({"load", "--sweep=100,200", "--requests=20", "--warmup=0", "--json", "--html", page}), 0);
  const json report = OutputLines().at(0);
  ASSERT_EQ(report["runs"].size(), 2);
  EXPECT_EQ(report["runs"][1]["rate"], 200);
  EXPECT_EQ(report["runs"][1]["requests"]["ok"], 20);
  std::ifstream file(page);
  const std::string html((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(html, HasSubstr("\"rate\":200.0"));
  EXPECT_THAT(html, Not(HasSubstr("/*DATA*/")));
  EXPECT_EQ(Run({"load", "--sweep=100,x"}), 2);
  EXPECT_EQ(Run({"load", "--sweep=100", "--hlog=x.hlog"}), 2);
  EXPECT_EQ(Run({"load", "--html=/nonexistent/x.html"}), 2);
}

// A server that fails every request keeps no objective, at any rate.
TEST_F(LoadCommandTest, LoadFindsNoRateThatFailingServersKeep) {
  server_.FailNext(100000, absl::InternalError("broken"));
  EXPECT_EQ(Run({"load", "--find_max", "--slo=p99=50ms", "--rate=1000", "--duration=100ms",
                 "--warmup=0"}),
            5);
  EXPECT_THAT(out_, HasSubstr("No rate down to 0.1 requests/s kept p99=50ms"));
}

TEST_F(LoadCommandTest, LoadWritesEachRequestAndItsHistograms) {
  const std::string jsonl = folder_ / "load.jsonl";
  const std::string hlog = folder_ / "load.hlog";
  EXPECT_EQ(Run({"load", "--requests=30", "--warmup=0", "--jsonl", jsonl, "--hlog", hlog}), 0);
  std::ifstream lines(jsonl);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    const json call = json::parse(line);
    EXPECT_EQ(call["metadata"]["session_num"], number);
    EXPECT_EQ(call["metadata"]["benchmark_phase"], "profiling");
    EXPECT_GT(call["metrics"]["request_latency"]["value"], 0);
    EXPECT_TRUE(call["error"].is_null());
  }
  EXPECT_EQ(number, 30);
  std::ifstream log(hlog);
  std::string first;
  std::getline(log, first);
  EXPECT_EQ(first, "#[Histogram log format version 1.3]");
}

TEST_F(LoadCommandTest, AnUnreachableServerLeavesOldFilesAsTheyAre) {
  for (const char* flag : {"html", "hlog", "jsonl"}) {
    const std::string file = WriteFile(absl::StrCat("old.", flag), "before");
    EXPECT_EQ(RunAsGiven({"load", "--server=127.0.0.1:1", "--requests=1", "--timeout=100ms",
                          absl::StrCat("--", flag, "=", file)}),
              3);
    std::ifstream after(file);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(after), {}), "before") << flag;
  }
}

TEST_F(LoadCommandTest, TwoOutputsTakeTwoFiles) {
  const std::string file = WriteFile("both", ""), same = folder_ / "./both";
  EXPECT_EQ(Run({"load", "--requests=1", "--warmup=0", "--html", file, "--jsonl", same}), 2);
  EXPECT_THAT(err_, HasSubstr("is given for two outputs"));
  EXPECT_EQ(Run({"load", "--requests=1", "--warmup=0", "--html=/dev/null", "--hlog=/dev/null"}), 0);
}

// Raises a signal with the first progress line; with `may_raise`, the first while that is true.
class InterruptingBuffer : public std::stringbuf {
 public:
  explicit InterruptingBuffer(std::function<bool()> may_raise = {}, int signal = SIGINT)
      : may_raise_(std::move(may_raise)), signal_(signal) {}
  int sync() override {
    if ((may_raise_ && !may_raise_()) || std::exchange(raised_, true)) return 0;
    return std::raise(signal_) + std::raise(signal_);  // as `timeout` does
  }

 private:
  const std::function<bool()> may_raise_;
  const int signal_;
  bool raised_ = false;
};

// The terminal of a command that a signal ends.
struct InterruptedIo {
  explicit InterruptedIo(int signal = SIGINT, std::function<bool()> may_raise = {})
      : buffer(std::move(may_raise), signal) {}

  InterruptingBuffer buffer;
  std::istringstream in;
  std::ostringstream out;
  std::ostream err{&buffer};
  Io io{.in = in, .out = out, .err = err, .err_is_terminal = true};
};

// Nothing answers, so only the signal can end the load.
TEST_F(LoadCommandTest, ASignalEndsALoadEarlyAndItStillReports) {
  server_.Stall();
  for (const int signal : {SIGINT, SIGTERM}) {
    InterruptedIo terminal(signal);
    const std::vector<std::string> args = {"load",          "--server",     server_.address(),
                                           "--duration=1h", "--timeout=1h", "--json"};
    EXPECT_EQ(RunAttendant(args, terminal.io), 3);
    const json report = json::parse(terminal.out.str());
    EXPECT_EQ(report["requests"]["ok"], 0);
    EXPECT_EQ(report["interrupted"], true);
    EXPECT_THAT(terminal.buffer.str(), HasSubstr("no request succeeded"));
  }
}

// The requests that ran are in no figure, and were the slowest.
TEST_F(LoadCommandTest, AnInterruptedLoadGetsNoVerdict) {
  // Eight are in flight: the ninth comes when one is answered.
  InterruptedIo terminal(SIGINT, [this] { return server_.encode_requests().size() > 8; });
  const std::vector<std::string> args = {"load",          "--server",    server_.address(),
                                         "--duration=1h", "--warmup=0s", "--fail_if=p99>1h"};
  EXPECT_EQ(RunAttendant(args, terminal.io), 6);
  EXPECT_THAT(terminal.buffer.str(), HasSubstr("no verdict, the load was interrupted"));
}

TEST_F(LoadCommandTest, AnInterruptedSearchClaimsNoRate) {
  InterruptedIo terminal;
  const std::vector<std::string> args = {"load",          "--server",    server_.address(),
                                         "--duration=1h", "--find_max",  "--slo=p99=10s",
                                         "--rate=50",     "--warmup=0s", "--timeout=1h"};
  EXPECT_EQ(RunAttendant(args, terminal.io), 6);
  EXPECT_THAT(terminal.out.str(), HasSubstr("No verdict: no rate was measured whole."));
}

// Calls `at_flush` when a line of the table has been written.
class TableBuffer : public std::stringbuf {
 public:
  explicit TableBuffer(std::function<void()> at_flush) : at_flush_(std::move(at_flush)) {}
  int sync() override {
    at_flush_();
    return 0;
  }

 private:
  const std::function<void()> at_flush_;
};

// After the first rate nothing answers, so only the signal can end the second.
TEST_F(LoadCommandTest, AnInterruptEndsASweepAndKeepsTheRatesBefore) {
  bool first_is_over = false;
  TableBuffer table([&] {
    server_.Stall();
    first_is_over = true;
  });
  InterruptingBuffer progress([&] { return first_is_over; });
  std::istringstream in;
  std::ostream out(&table), err(&progress);
  Io io{.in = in, .out = out, .err = err, .err_is_terminal = true};
  const std::vector<std::string> args = {
      "load",        "--server",    server_.address(), "--requests=5", "--sweep=100,200,400",
      "--warmup=0s", "--timeout=1h"};
  EXPECT_EQ(RunAttendant(args, io), 0);
  const auto in_table = [](absl::string_view line) {
    return !line.empty() && !absl::StartsWith(line, "warning");  // a loaded machine sends late
  };
  const std::vector<std::string> lines = absl::StrSplit(table.str(), '\n', in_table);
  ASSERT_EQ(lines.size(), 3) << table.str();
  EXPECT_THAT(lines[1], HasSubstr("100"));
  EXPECT_THAT(lines[2], HasSubstr("200"));
}

}  // namespace
}  // namespace attendant::client
