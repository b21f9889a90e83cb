// SPDX-License-Identifier: Apache-2.0
#include "server/log/process_log.h"

#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "google/protobuf/stubs/logging.h"
#include "grpc/support/log.h"
#include "server/http/json/json_writer.h"
#include "server/log/line_limit.h"
#include "server/text/unicode/readable.h"
#include "server/threads/steady_time.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace attendant {
namespace {

// %* in a pattern: the message as a JSON string.
class JsonLogMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    std::string text;
    AppendJsonString(absl::string_view(message.payload.data(), message.payload.size()), text);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonLogMessage>();
  }
};

// Of a line: gRPC quotes headers, which a client makes as long as it wants.
constexpr size_t kMaxLibraryBytes = 512;

// Where the lines of libraries go.
struct LibraryLines {
  std::shared_ptr<spdlog::logger> logger;
  LineLimit limit{60, absl::Minutes(1)};
};

// Never freed: threads of gRPC may log until the process is gone.
absl::Mutex& library_mutex = *new absl::Mutex;
std::shared_ptr<LibraryLines>& library_lines ABSL_GUARDED_BY(library_mutex) =
    *new std::shared_ptr<LibraryLines>;

std::shared_ptr<LibraryLines> GetLibraryLines() {
  absl::MutexLock lock(&library_mutex);
  return library_lines;
}

// protobuf writes a line for each string that is not UTF-8. Requests get their errors as statuses.
void LogProtobuf(google::protobuf::LogLevel level, const char* /*file*/, int /*line*/,
                 const std::string& message) {
  const bool fatal = level == google::protobuf::LOGLEVEL_FATAL;
  GetLibraryLines()->logger->log(fatal ? spdlog::level::critical : spdlog::level::debug,
                                 "protobuf: {}", Readable(message, kMaxLibraryBytes));
}

// gRPC writes, among other lines, one for each failed TLS handshake.
void LogGrpc(gpr_log_func_args* line) {
  const std::shared_ptr<LibraryLines> lines = GetLibraryLines();
  const char* const slash = std::strrchr(line->file, '/');
  const char* const file = slash == nullptr ? line->file : slash + 1;
  const auto log = [&](spdlog::level::level_enum level) {
    lines->logger->log(level, "gRPC: {} ({}:{})", Readable(line->message, kMaxLibraryBytes), file,
                       line->line);
  };
  if (line->severity != GPR_LOG_SEVERITY_ERROR) return log(spdlog::level::debug);
  // GPR_ASSERT, which aborts next.
  if (absl::StartsWith(line->message, "assertion failed")) return log(spdlog::level::critical);
  const std::optional<int64_t> left_out = lines->limit.Admit(SteadyNow());
  if (!left_out.has_value()) return;
  if (*left_out > 0) lines->logger->warn("gRPC: {} lines were left out", *left_out);
  log(spdlog::level::warn);
}

}  // namespace

void ConfigureLog(const std::string& format, const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>(
      "attendant", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  if (format == "json") {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<JsonLogMessage>('*').set_pattern(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":%*})");
    logger->set_formatter(std::move(formatter));
  } else {
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%-5l%$ %v");
  }
  {
    absl::MutexLock lock(&library_mutex);
    library_lines = std::make_shared<LibraryLines>();
    library_lines->logger = logger;
  }
  spdlog::set_default_logger(std::move(logger));
  google::protobuf::SetLogHandler(LogProtobuf);
  gpr_set_log_function(LogGrpc);
}

}  // namespace attendant
