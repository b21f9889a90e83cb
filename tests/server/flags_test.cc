// SPDX-License-Identifier: Apache-2.0
#include "server/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/core/base/regular_file.h"
#include "server/app/app_options.h"
#include "server/process.h"
#include "server/requests/memory/memory_budgets.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<ServerFlags> Parse(const std::vector<std::string>& arguments) {
  return ParseServerFlags(arguments);
}

TEST(FlagsTest, ReadsEveryForm) {
  const auto flags = Parse({"--model=a=/x", "--model", "b=/y", "--model=c=/z,d=/w",
                            "--max_batch_tokens=2048", "--threads", "3", "--log_format=json"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(flags->models, ElementsAre("a=/x", "b=/y", "c=/z", "d=/w"));
  EXPECT_EQ(flags->max_batch_tokens, 2048);
  EXPECT_EQ(flags->threads, 3);
  EXPECT_EQ(flags->log_format, "json");
  EXPECT_EQ(flags->listen, "127.0.0.1:8001");
}

TEST(FlagsTest, WordsBecomeValues) {
  const auto flags =
      Parse({"--model=a=/x", "--console=off", "--reflection=off", "--attention=off",
             "--system_shared_memory=on", "--strict_readiness=on", "--model_control=explicit",
             "--pin_threads=off", "--connections_page=on"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_FALSE(flags->console);
  EXPECT_FALSE(flags->reflection);
  EXPECT_FALSE(flags->attention_service);
  EXPECT_TRUE(flags->system_shared_memory);
  EXPECT_EQ(flags->readiness, Readiness::kEveryModel);
  EXPECT_EQ(flags->model_control, ModelControl::kExplicit);
  EXPECT_EQ(flags->pin_threads, PinThreads::kOff);
  EXPECT_EQ(flags->access.connections_page, ShowConnections::kOn);
}

TEST(FlagsTest, HelpAndVersionNeedNoModel) {
  EXPECT_TRUE(Parse({"--help"})->help);
  EXPECT_TRUE(Parse({"--version"})->version);
  for (const char* name :
       {"--model", "--drain_timeout_s SECONDS", "default 25)", "--tls_client_ca"}) {
    EXPECT_THAT(ServerHelp(), HasSubstr(name));
  }
}

TEST(FlagsTest, HelpComesBeforeEveryError) {
  EXPECT_TRUE(Parse({"--threads=-1", "--help"})->help);
  EXPECT_TRUE(Parse({"--version", "serve"})->version);
}

TEST(FlagsTest, MarkdownNamesEveryFlag) {
  EXPECT_THAT(ServerFlagsMarkdown(),
              HasSubstr("| `--drain_timeout_s SECONDS` | `25` | from 0 to 2592000 | Longest"));
  EXPECT_TRUE(Parse({"--help_markdown"})->help_markdown);
}

TEST(FlagsTest, SaysWhatIsWrong) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "no model: give --model"},
      {{"--model=a=/x", "--model_control=poll"}, "--model_control=poll needs --model_repository"},
      {{"--model=a=/x", "--model_control=all"}, "--model_control cannot be 'all'"},
      {{"--model=a=/x", "serve"}, "'serve' is not a flag"},
      {{"--model=a=/x", "--modle=b"}, "no flag --modle"},
      {{"--model"}, "--model needs a value"},
      {{"--model=a=/x", "--threads=many"}, "--threads cannot be 'many'"},
      {{"--model=a=/x", "--threads=-1"}, "--threads cannot be -1: it must be from 0 to 4096"},
      {{"--model=a=/x", "--replicas=-1"}, "--replicas cannot be -1"},
      {{"--model=a=/x", "--pin_threads=yes"}, "--pin_threads cannot be 'yes': it is one of auto"},
      {{"--model=a=/x", "--cpu_isa=sse"}, "--cpu_isa cannot be 'sse': it is one of auto, avx2"},
      {{"--model=a=/x", "--matmul=mkl"}, "--matmul cannot be 'mkl': it is one of auto, onednn"},
      {{"--model=a=/x", "--max_batch_tokens=15"}, "--max_batch_tokens cannot be 15"},
      {{"--model=a=/x", "--max_batch_tokens=1024", "--max_queued_tokens=1023"},
       "it must be from 1024"},
      {{"--model=a=/x", "--max_queued_tokens=15"}, "it must be from 16"},
      {{"--model=a=/x", "--max_queued_attention_operations=137438953471"},
       "it must be from 137438953472"},
      {{"--model=a=/x", "--max_pending_request_bytes=1048576"}, "it must be from 16777216"},
      {{"--model=a=/x", "--max_pending_response_bytes=1048576"}, "it must be from 67108864"},
      {{"--model=a=/x", "--max_connection_calls=0"}, "--max_connection_calls cannot be 0"},
      {{"--model=a=/x", "--max_request_bytes=99999999999"}, "--max_request_bytes cannot be"},
      {{"--model=a=/x", "--dtype=f64"}, "--dtype cannot be 'f64': it is one of auto, f32"},
      {{"--model=a=/x", "--backend=tpu"}, "--backend cannot be 'tpu'"},
      {{"--model=a=/x", "--log_level=loud"}, "--log_level cannot be 'loud'"},
      {{"--model=a=/x", "--tls_cert=c.pem"}, "one is missing"},
      {{"--model=a=/x", "--access_log_sample=1.5"}, "--access_log_sample cannot be 1.5"},
      {{"--model=a=/x", "--access_log_lines_per_s=0"}, "--access_log_lines_per_s cannot be 0"},
      {{"--model=a=/x", "--otlp_endpoint=c:4317"}, "--otlp_endpoint: 'c:4317' is not http://"},
      {{"--model=a=/x", "--connections_page=yes"}, "--connections_page cannot be 'yes'"},
      {{"--model=a=/x", "--tls_client_ca=ca.pem"}, "needs --tls_cert"},
      {{"--model=a=/x", "--listen=8001"}, "--listen: address '8001': want HOST:PORT"},
      {{"--model=a=/x", "--http_listen=[::1]:99999"}, "--http_listen: address '[::1]:99999'"},
      {{"--model=a=/x", "--listen=[::]:1", "--http_listen=[::]:1"}, "are both [::]:1"},
      {{"--model=a=/x", "--http_tls=on"}, "needs --tls_cert"},
  };
  for (const auto& [arguments, message] : cases) {
    const auto flags = Parse(arguments);
    EXPECT_EQ(flags.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(flags.status().message()), HasSubstr(message));
  }
}

TEST(FlagsTest, AcceptsWhatIsJustEnough) {
  for (const std::vector<std::string>& enough :
       {std::vector<std::string>{"--max_batch_tokens=16"},
        {"--max_batch_tokens=1024", "--max_queued_tokens=1024"},
        {"--max_pending_request_bytes=16777216"},
        {"--max_pending_response_bytes=67108864"},
        {"--max_priority=100"},
        {"--max_priority=-100"}}) {
    std::vector<std::string> arguments = {"--model=a=/x"};
    arguments.insert(arguments.end(), enough.begin(), enough.end());
    EXPECT_TRUE(Parse(arguments).ok()) << enough.back();
  }
}

TEST(PortFileTest, HoldsBothPorts) {
  TempDirectory directory;
  const std::string path = directory / "ports";
  ASSERT_TRUE(WritePortFile(path, 8001, 8002).ok());
  EXPECT_EQ(*ReadTextFile(path, 1000), "grpc=8001\nhttp=8002\n");
  EXPECT_THAT(std::string(WritePortFile(directory / "no/ports", 1, 2).message()),
              HasSubstr("--port_file"));
}

TEST(MemoryLimitsOfFlagsTest, AConnectionHoldsItsPercentButRoomForFourLargestMessages) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  ServerFlags flags;
  const auto limits = [&flags](int64_t percent) {
    flags.max_connection_memory_percent = percent;
    return MakeMemoryLimits(flags);
  };
  EXPECT_EQ(limits(25).connection_request_bytes, 128 * kMiB);
  EXPECT_EQ(limits(25).connection_response_bytes, 4 * 64 * kMiB + 8 * kMiB);
  EXPECT_EQ(limits(50).connection_request_bytes, 256 * kMiB);
  EXPECT_EQ(limits(50).connection_response_bytes, 512 * kMiB);
  EXPECT_EQ(limits(1).connection_request_bytes, 4 * 16 * kMiB + 8 * kMiB);
  EXPECT_EQ(limits(100).connection_request_bytes, 512 * kMiB);
  EXPECT_EQ(limits(25).connection_stream_bytes, 64 * kMiB);
  EXPECT_EQ(limits(1).connection_stream_bytes, 4 * kStreamBytes + 8 * kMiB);
}

}  // namespace
}  // namespace attendant
