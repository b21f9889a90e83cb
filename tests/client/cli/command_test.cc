// SPDX-License-Identifier: Apache-2.0
// The whole program against a server in this process.
#include "client/cli/command.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/client/cli/command_fixture.h"
#include "tests/support/closed_port.h"

namespace attendant::client {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST_F(CommandTest, HelpAndVersion) {
  EXPECT_EQ(RunAsGiven({"help"}), 0);
  for (const char* command : {"embed", "encode", "words", "models", "health", "load", "heatmap"}) {
    EXPECT_THAT(out_, HasSubstr(absl::StrCat("  ", command, " ")));
  }
  for (const char* command : {"embed", "encode", "words", "models", "health", "load", "heatmap"}) {
    EXPECT_EQ(RunAsGiven({"help", command}), 0);
    EXPECT_THAT(out_, StartsWith(absl::StrCat("Usage: attendant ", command)));
    EXPECT_THAT(out_, HasSubstr("Exit codes: 0"));
    const std::string help = out_;
    EXPECT_EQ(RunAsGiven({command, "--help"}), 0);
    EXPECT_EQ(out_, help);
  }
  EXPECT_EQ(RunAsGiven({"--version"}), 0);
  EXPECT_THAT(out_, StartsWith("attendant "));
}

TEST_F(CommandTest, WrongUsageIsExitCode2) {
  EXPECT_EQ(RunAsGiven({}), 2);
  EXPECT_EQ(RunAsGiven({"embde"}), 2);
  EXPECT_THAT(err_, HasSubstr("no command 'embde'"));
  EXPECT_EQ(RunAsGiven({"help", "embde"}), 2);
  EXPECT_EQ(Run({"embed", "--nothing"}), 2);
  EXPECT_EQ(Run({"embed", "--normalize", "--no-normalize", "a"}), 2);
  EXPECT_EQ(Run({"embed", "--output", ::testing::TempDir() + "/bits.npy", "--embedding_format=int8",
                 "a"}),
            2);
  EXPECT_THAT(err_, HasSubstr("see --embedding_format"));
  EXPECT_EQ(Run({"embed", "--file", "/nonexistent.txt"}), 2);
  EXPECT_EQ(Run({"embed", "--file", ::testing::TempDir()}), 2);
  EXPECT_THAT(err_, HasSubstr("cannot be read"));
  EXPECT_EQ(Run({"embed", "--batch=0", "a"}), 2);
  EXPECT_EQ(Run({"embed", "--tls_ca=/nonexistent.pem", "a"}), 2);
  EXPECT_EQ(Run({"embed", "--output=/nonexistent/x.npy", "a"}), 2);
  EXPECT_EQ(Run({"embed", "a\xff"}), 2);
  EXPECT_THAT(err_, HasSubstr("text 1 is not valid UTF-8 at byte 1"));
  EXPECT_EQ(Run({"embed"}), 2);
  EXPECT_THAT(err_, HasSubstr("no texts"));
  EXPECT_EQ(Run({"encode", "--ids=1,x"}), 2);
  EXPECT_EQ(Run({"encode", "--ids=1,2", "--mask=1"}), 2);
  EXPECT_EQ(Run({"encode", "--ids=1,2", "--mask=1,1,1"}), 2);
  EXPECT_THAT(err_, HasSubstr("--mask has 3 values, its --ids has 2"));
  EXPECT_EQ(Run({"encode", "--mask=1"}), 2);
  EXPECT_EQ(Run({"models", "toy"}), 2);
  EXPECT_EQ(Run({"health", "toy"}), 2);
  EXPECT_EQ(Run({"load", "--lengths=strange"}), 2);
  EXPECT_EQ(Run({"load", "--concurrency=0"}), 2);
  EXPECT_EQ(Run({"load", "--rate=-1"}), 2);
  EXPECT_EQ(Run({"load", "--rate=1e10"}), 2);
  EXPECT_EQ(Run({"load", "--concurrency=1000000", "--connections=2"}), 2);
  EXPECT_EQ(Run({"load", "--warmup=inf"}), 2);
  EXPECT_EQ(Run({"load", "--texts=/nonexistent.txt"}), 2);
  EXPECT_EQ(Run({"load", "--protocol=kserve"}), 2);
  server_.SetModels({"toy", "other"});
  EXPECT_EQ(Run({"embed", "a"}), 2);
  EXPECT_THAT(err_, HasSubstr("other, toy"));
}

TEST_F(CommandTest, AServerErrorIsExitCode1) {
  EXPECT_EQ(Run({"load", "--model=nothing"}), 1);
  EXPECT_EQ(Run({"load", "--protocol=kserve", "--model=nothing"}), 1);
  server_.FailAll(absl::InvalidArgumentError("sequence 0 is empty"));
  EXPECT_EQ(Run({"embed", "--model=toy", "a"}), 1);
  EXPECT_THAT(err_, HasSubstr("INVALID_ARGUMENT: sequence 0 is empty"));
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_EQ(Run({"encode", "--model=toy", "a"}), 1);
  EXPECT_EQ(Run({"models"}), 1);
  server_.FailAll(absl::InvalidArgumentError("a\nb\x1b[2J\u009b2J"));
  EXPECT_EQ(Run({"embed", "--model=toy", "a"}), 1);
  EXPECT_THAT(err_, HasSubstr("INVALID_ARGUMENT: a b [2J 2J\n")) << "a terminal obeys the rest";
}

TEST_F(CommandTest, NoAnswerIsExitCode3) {
  server_.Stall();
  EXPECT_EQ(Run({"embed", "--timeout=100ms", "a"}), 3);
  EXPECT_EQ(Run({"load", "--timeout=100ms", "--requests=1", "--warmup=0"}), 3);
  const ClosedPort port;
  const std::string gone = absl::StrCat("127.0.0.1:", port.number());
  for (const char* command : {"embed", "encode", "words", "models", "health", "load", "heatmap"}) {
    EXPECT_EQ(RunAsGiven({command, "--server", gone}, "text\n"), 3) << command;
    EXPECT_THAT(err_, HasSubstr(gone)) << command;
  }
}

TEST_F(CommandTest, ALongTimeoutIsNoTimeout) {
  EXPECT_EQ(Run({"embed", "--timeout=10000000h", "a"}), 0) << err_;
}

// Reads some, then fails, as a disk that is gone.
TEST_F(CommandTest, InputThatBreaksOffIsAnError) {
  class BreakingBuffer : public std::stringbuf {
   public:
    BreakingBuffer() : std::stringbuf("one\ntwo\n") {}
    int_type underflow() override {
      const int_type next = std::stringbuf::underflow();
      if (next == traits_type::eof()) throw std::ios_base::failure("gone");
      return next;
    }
  };
  BreakingBuffer buffer;
  std::istream in(&buffer);
  std::ostringstream out, err;
  Io io{.in = in, .out = out, .err = err};
  const std::vector<std::string> args = {"embed", "--server", server_.address()};
  EXPECT_EQ(RunAttendant(args, io), 2);
  EXPECT_THAT(err.str(), HasSubstr("standard input cannot be read to its end"));
}

TEST_F(CommandTest, EmbedsArgumentsStandardInputAndFile) {
  const std::string file = WriteFile("texts.txt",
                                     "\xEF\xBB\xBF"
                                     "from file\r\nlast");
  EXPECT_EQ(Run({"embed", "first", "-", "[SEP]", "--json", "--file", file}, "one\n\nthree"), 0);
  std::vector<std::string> texts;
  for (const json& line : OutputLines()) {
    texts.push_back(line["text"]);
    EXPECT_EQ(line["index"], texts.size() - 1);
    EXPECT_EQ(line["embedding"][0], line["tokens"]);
    EXPECT_EQ(line["embedding"].size(), 4);
  }
  EXPECT_THAT(texts,
              testing::ElementsAre("first", "one", "", "three", "[SEP]", "from file", "last"));
}

TEST_F(CommandTest, EmbedsManyLinesInOrder) {
  std::string input;
  for (size_t i = 0; i < 10000; ++i) absl::StrAppend(&input, std::string(i % 50, 'x'), "\n");
  EXPECT_EQ(Run({"embed", "--json"}, input), 0);
  const std::vector<json> lines = OutputLines();
  ASSERT_EQ(lines.size(), 10000);
  for (size_t i = 0; i < lines.size(); ++i) {
    ASSERT_EQ(lines[i]["index"], i);
    ASSERT_EQ(lines[i]["embedding"][0], i % 50 + 2);
  }
  EXPECT_EQ(server_.encode_requests().size(), 313);
}

TEST_F(CommandTest, EmbedPassesItsFlagsOn) {
  EXPECT_EQ(Run({"embed", "--model=m", "--pooling=max", "--dims=2", "--no-normalize",
                 "--dtype=bf16", "--truncation=none", "--priority=-7", "a"}),
            0);
  const v1::EncodeRequest sent = server_.encode_requests().at(0);
  EXPECT_EQ(sent.model(), "m");
  EXPECT_EQ(sent.outputs().pooled().pooling(), v1::POOLING_MAX);
  EXPECT_EQ(sent.outputs().pooled().dims(), 2);
  EXPECT_TRUE(sent.outputs().pooled().has_normalize());
  EXPECT_FALSE(sent.outputs().pooled().normalize());
  EXPECT_EQ(sent.outputs().dtype(), v1::DTYPE_BF16);
  EXPECT_EQ(sent.truncation(), v1::TRUNCATION_NONE);
  EXPECT_EQ(sent.priority(), -7);
  EXPECT_EQ(Run({"embed", "a"}), 0);
  EXPECT_FALSE(server_.encode_requests().at(1).outputs().pooled().has_normalize());
}

// The server of this test makes embeddings and states only: the other commands end with an error.
TEST_F(CommandTest, EachCommandOfTextsTakesPrompts) {
  for (const std::string command :
       {"embed", "encode", "sparse", "words", "tokens", "classify", "heatmap"}) {
    Run({command, "--prompt_name=query", "a"});
    EXPECT_EQ(server_.encode_requests().back().prompt_name(), "query") << command;
    Run({command, "--no-prompt", "a"});
    EXPECT_TRUE(server_.encode_requests().back().has_prompt_name()) << command;
    EXPECT_EQ(server_.encode_requests().back().prompt_name(), "") << command;
    Run({command, "a"});
    EXPECT_FALSE(server_.encode_requests().back().has_prompt_name()) << command;
    EXPECT_EQ(Run({command, "--prompt_name=query", "--no-prompt", "a"}), 2) << command;
    EXPECT_THAT(err_, HasSubstr("--prompt_name and --no-prompt exclude each other"));
  }
}

// Here too.
TEST_F(CommandTest, EachCommandOfTextsTakesAVersion) {
  server_.SetModels({"toy", "toy", "toy"});
  for (const std::string command :
       {"embed", "encode", "sparse", "words", "tokens", "classify", "heatmap"}) {
    Run({command, "--model_version=3", "a"});
    EXPECT_EQ(server_.encode_requests().back().model_version(), "3") << command;
    Run({command, "a"});
    EXPECT_EQ(server_.encode_requests().back().model_version(), "") << command;
    EXPECT_EQ(Run({command, "--model_version=-1", "a"}), 2) << command;
  }
}

TEST_F(CommandTest, EmbedsForPeople) {
  EXPECT_EQ(Run({"embed", "abc", "tab\there"}), 0);
  EXPECT_EQ(out_,
            "[  5.0000  1.0000  0.0000  0.0000 ] 4 values, 5 tokens  abc\n"
            "[ 10.0000  1.0000  0.0000  0.0000 ] 4 values, 10 tokens  tab here\n");
}

TEST_F(CommandTest, ShowsSimilarity) {
  EXPECT_EQ(Run({"embed", "--similarity", "--top=1", "a", "b", "something else"}), 0);
  EXPECT_THAT(out_, HasSubstr("Most similar\n\n   1.00  a\n         b\n"));
  EXPECT_EQ(Run({"embed", "--similarity", "--json", "a", "b"}), 0);
  EXPECT_NEAR(OutputLines().at(0)["cosines"][0][1].get<double>(), 1, 1e-6);
}

// As when servers behind one name have different models.
TEST_F(CommandTest, AnswersOfDifferentWidthsAreAnError) {
  server_.WidenAnswers();
  const std::string output = absl::StrCat("--output=", folder_ / "widths.npy");
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"embed", "--similarity"}, {"embed", output}, {"encode", output}}) {
    std::vector<std::string> all = args;
    all.insert(all.end(), {"--batch=1", "a", "b"});
    EXPECT_EQ(Run(all), 1) << args[0];
    EXPECT_THAT(err_, HasSubstr("the answers disagree"));
  }
}

TEST_F(CommandTest, NamesMistakesAboutTls) {
  EXPECT_EQ(Run({"models", "--tls"}), 3);
  EXPECT_THAT(err_, EndsWith("wrong version number (the server speaks no TLS)\n"));
}

TEST_F(CommandTest, AFileThatCannotBeWrittenCostsNoWork) {
  for (const std::vector<std::string>& args : {std::vector<std::string>{"embed", "--output"},
                                               {"encode", "--output"},
                                               {"attend", "--output"},
                                               {"attend", "--weights_output"},
                                               {"heatmap", "--npy"},
                                               {"heatmap", "--out"}}) {
    std::vector<std::string> missing = args;
    missing.emplace_back("/nonexistent/x.png");
    EXPECT_EQ(Run(missing, "text"), 2);
    EXPECT_EQ(err_,
              "attendant: cannot write the file /nonexistent/x.png: No such file or directory\n");
  }
  EXPECT_EQ(Run({"embed", "--output", ::testing::TempDir(), "a"}), 2);
  EXPECT_THAT(err_, HasSubstr("Is a directory"));
  EXPECT_THAT(server_.encode_requests(), IsEmpty());

  const std::string kept = WriteFile("kept.npy", "kept");
  EXPECT_EQ(Run({"embed", "--output", kept}), 2);
  EXPECT_THAT(err_, HasSubstr("no texts"));
  std::ifstream file(kept);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "kept");
}

TEST_F(CommandTest, WritesNpyFiles) {
  const std::string path = folder_ / "command_test.npy";
  EXPECT_EQ(Run({"embed", "--output", path, "a", "b"}), 0);
  EXPECT_THAT(out_, IsEmpty());
  std::ifstream embeddings(path, std::ios::binary);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(embeddings), {}),
              HasSubstr("'shape': (2, 4)"));
  EXPECT_EQ(Run({"encode", "--output", path, "a", "bc"}), 0);
  EXPECT_THAT(out_, StartsWith("sequence 0: 3 tokens x 4 values  a\nsequence 1: 4 tokens"));
  std::ifstream states(path, std::ios::binary);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(states), {}),
              HasSubstr("'shape': (7, 4)"));
}

TEST_F(CommandTest, EncodesIdsAndTexts) {
  EXPECT_EQ(Run({"encode", "--ids=7,8", "--ids", "9", "--mask=1,0", "--json", "a"}), 0);
  const std::vector<json> lines = OutputLines();
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0]["token_ids"], json({7, 8}));
  EXPECT_EQ(lines[0]["last_hidden_state"], json({{7, 0, 0, 1}, {8, 1, 0, 1}}));
  EXPECT_EQ(lines[1]["last_hidden_state"], json::array({{9, 0, 0, 1}}));
  EXPECT_EQ(lines[2]["text"], "a");
  EXPECT_EQ(lines[2]["last_hidden_state"][2], json({102, 2, 0, 1}));
  const v1::EncodeRequest sent = server_.encode_requests().at(0);
  EXPECT_EQ(sent.sequences().sequences(0).ids().attention_mask_size(), 2);
  EXPECT_EQ(sent.sequences().sequences(1).ids().attention_mask_size(), 0);
}

TEST_F(CommandTest, EncodesForPeople) {
  EXPECT_EQ(Run({"encode", "--ids=7"}), 0);
  EXPECT_EQ(out_,
            "sequence 0: 1 tokens x 4 values  (ids)\n"
            "     0  id      7  [  7.0000  0.0000  0.0000  1.0000 ]\n");
}

TEST_F(CommandTest, ListsModels) {
  server_.SetModels({"toy", "slow"});
  EXPECT_EQ(Run({"models"}), 0);
  EXPECT_THAT(out_, HasSubstr("toy    1        ready    fake"));
  EXPECT_THAT(out_, HasSubstr("slow   1        loading\n"));
  EXPECT_EQ(Run({"models", "--json"}), 0);
  EXPECT_EQ(OutputLines().at(0)["models"][0]["hidden"], 4);
}

TEST_F(CommandTest, ListsAttentionModulesBesideModels) {
  server_.SetModels({"toy", "block"});
  EXPECT_EQ(Run({"models", "--json"}), 0);
  EXPECT_EQ(OutputLines().at(0)["modules"].size(), 0u);
  server_.SetModules({"block"});  // what was loading has turned out to be one
  EXPECT_EQ(Run({"models"}), 0);
  EXPECT_THAT(out_, HasSubstr("MODEL  VERSION  STATE  BACKEND"));
  EXPECT_THAT(out_, HasSubstr("\n\nMODULE  STATE  TYPE"));
  EXPECT_THAT(out_, HasSubstr("\nblock   ready  multi_head"));
  EXPECT_THAT(out_, testing::Not(HasSubstr("loading")));
  EXPECT_EQ(Run({"models", "--json"}), 0);
  EXPECT_EQ(OutputLines().at(0)["models"].size(), 1u);
  EXPECT_EQ(OutputLines().at(0)["modules"][0]["heads"], 2);
  server_.SetModels({});
  EXPECT_EQ(Run({"models"}), 0);
  EXPECT_THAT(out_, StartsWith("MODULE"));
}

TEST_F(CommandTest, HealthIsTheExitCode) {
  EXPECT_EQ(Run({"health"}), 0);
  EXPECT_EQ(out_, "SERVING\n");
  EXPECT_EQ(Run({"health", "--service=toy", "--json"}), 0);
  EXPECT_EQ(OutputLines().at(0)["status"], "SERVING");
  EXPECT_EQ(Run({"health", "--service=nobody"}), 1);
  EXPECT_EQ(Run({"health", "--watch"}), 3);  // the fake server ends the watch
  EXPECT_EQ(out_, "SERVING\n");
  server_.SetServing(false);
  EXPECT_EQ(Run({"health"}), 1);
  EXPECT_EQ(out_, "NOT_SERVING\n");
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  int waited = 3;  // the server gets 200 ms
  while (waited == 3 && absl::Now() < limit) waited = Run({"health", "--wait=1ms"});
  EXPECT_EQ(waited, 1);
}

// A port where connections are made and nothing answers.
TEST_F(CommandTest, HealthWaitsNoLongerThanItIsTold) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 16), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string server = absl::StrCat("--server=127.0.0.1:", ntohs(address.sin_port));
  const absl::Time start = absl::Now();
  EXPECT_EQ(RunAsGiven({"health", server, "--wait=300ms", "--timeout=1m"}), 3);
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  close(listener);
}

TEST_F(CommandTest, HeatmapTakesTheLastLayerOfTheVersionThatAnswers) {
  std::vector<v1::ModelInfo> versions(2);
  for (v1::ModelInfo& model : versions) model.set_name("toy");
  versions[0].set_version(1);
  versions[0].set_state(v1::MODEL_STATE_IDLE);
  versions[0].set_layers(6);
  versions[1].set_version(2);
  versions[1].set_state(v1::MODEL_STATE_FAILED);
  versions[1].set_layers(12);
  server_.SetDescriptions(versions);
  EXPECT_EQ(Run({"heatmap", "--model=toy", "a text"}), kExitServerError) << "it has no weights";
  const v1::EncodeRequest asked = server_.encode_requests().at(0);
  EXPECT_THAT(asked.outputs().attention_weights().layers(), testing::ElementsAre(5));
}

TEST_F(CommandTest, HeatmapDrawsNoLayerOfAModelThatHasNotLoaded) {
  server_.SetModels({"slow"});
  EXPECT_EQ(Run({"heatmap", "a text"}), kExitNoAnswer);
  EXPECT_THAT(err_, HasSubstr("version 1 of the model slow is loading"));
  EXPECT_TRUE(server_.encode_requests().empty());
}

TEST_F(CommandTest, HeatmapRefusesAnAnswerWithoutWeights) {
  EXPECT_EQ(Run({"heatmap", "--layer=0", "a text"}), kExitServerError);
  EXPECT_THAT(err_, HasSubstr("not the attention weights"));
  EXPECT_EQ(Run({"heatmap", "--layer=all", "a text"}), kExitUsage);
  EXPECT_EQ(Run({"heatmap", "--scale=0", "a text"}), kExitUsage);
  EXPECT_EQ(Run({"heatmap", "--heads=0-9999999", "a text"}), kExitUsage);
  EXPECT_EQ(Run({"heatmap", "--mask=1,0", "a text"}), kExitUsage);
}

}  // namespace
}  // namespace attendant::client
