// SPDX-License-Identifier: Apache-2.0
#include "server/process.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/stubs/logging.h"
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
    const std::string text =
        JsonString(std::string(message.payload.data(), message.payload.size()));
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonLogMessage>();
  }
};

// protobuf writes a line for each string that is not UTF-8: a client could fill the log. Requests
// get their errors as statuses.
void LogProtobuf(google::protobuf::LogLevel level, const char* /*file*/, int /*line*/,
                 const std::string& message) {
  const bool fatal = level == google::protobuf::LOGLEVEL_FATAL;
  spdlog::log(fatal ? spdlog::level::critical : spdlog::level::debug, "protobuf: {}", message);
}

}  // namespace

std::string JsonString(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

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
  spdlog::set_default_logger(std::move(logger));
  google::protobuf::SetLogHandler(LogProtobuf);
}

absl::Status WritePortFile(const std::string& path, int grpc_port, int http_port) {
  const std::string draft = absl::StrCat(path, ".", getpid(), ".tmp");
  std::ofstream file(draft, std::ios::trunc);
  file << "grpc=" << grpc_port << "\nhttp=" << http_port << "\n";
  file.close();
  if (file.good() && std::rename(draft.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const std::string reason = std::strerror(errno);
  std::remove(draft.c_str());
  return absl::UnavailableError(absl::StrCat("cannot write --port_file ", path, ": ", reason));
}

StopSignals::StopSignals() {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that goes away is an error of its socket, nothing more
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

StopSignals::~StopSignals() {
  if (!thread_.joinable()) return;
  ending_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);  // wakes sigwait
  thread_.join();
}

void StopSignals::Watch(std::function<void()> on_stop) {
  thread_ = std::thread([this, on_stop = std::move(on_stop)] { Wait(on_stop); });
}

void StopSignals::Wait(const std::function<void()>& on_stop) const {
  constexpr int kExitOfSignal = 128;  // as shells report it
  for (bool first = true;; first = false) {
    int signal = 0;
    sigwait(&signals_, &signal);
    if (ending_) return;
    if (!first) _exit(kExitOfSignal + signal);
    spdlog::info("{}: stopping; once more ends at once", signal == SIGTERM ? "SIGTERM" : "SIGINT");
    on_stop();
  }
}

}  // namespace attendant
