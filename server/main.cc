// SPDX-License-Identifier: Apache-2.0
// attendant-server. Exit codes: 0 after a stop, 1 when it could not start or load any model, 2 for
// a command line that cannot be meant.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/flags/standard_streams.h"
#include "server/app/app.h"
#include "server/app/model_sources.h"
#include "server/flags.h"
#include "server/log/process_log.h"
#include "server/process.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace attendant {
namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

int Fail(const absl::Status& status) {
  spdlog::error("{}", std::string(status.message()));
  return kFailure;
}

// With its connections open: the kernel closes them and the ports in one step, and calls that came
// too late fail with UNAVAILABLE. Closing one with unread calls drops what is on its way to the
// client, so the last answers get a moment.
[[noreturn]] void EndProcess(int code) {
  absl::SleepFor(absl::Milliseconds(100));
  spdlog::default_logger()->flush();
  _exit(code);
}

int Usage(const absl::Status& status) {
  std::fprintf(stderr, "attendant-server: %s\nTry attendant-server --help\n",
               std::string(status.message()).c_str());
  return kUsage;
}

int Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

// How long a stop may take: the service manager must not end the process before.
absl::Duration StopTime(const ServerFlags& flags) {
  constexpr absl::Duration kFlushTime = absl::Seconds(10);  // of logs and spans, with room
  return absl::Seconds(flags.drain_delay_s + flags.drain_timeout_s) + kFlushTime;
}

int Serve(const ServerFlags& flags, const ModelSources& sources) {
  StopSignals signals;
  spdlog::info("attendant-server {}", kVersion);
  absl::StatusOr<std::unique_ptr<App>> app = App::Start(flags, sources);
  if (!app.ok()) return Fail(app.status());
  if (!flags.port_file.empty()) {
    const absl::Status written =
        WritePortFile(flags.port_file, (*app)->grpc_port(), (*app)->http_port());
    if (!written.ok()) EndProcess(Fail(written));  // waits for no load in progress
  }
  signals.Watch([&app, &flags] {
    NotifyServiceManager(absl::StrCat("STOPPING=1\nEXTEND_TIMEOUT_USEC=",
                                      absl::ToInt64Microseconds(StopTime(flags))));
    (*app)->RequestStop();
  });
  NotifyServiceManager("READY=1");
  const absl::Status status = (*app)->Run();
  EndProcess(status.ok() ? 0 : Fail(status));
}

int Main(const std::vector<std::string>& arguments) {
  const absl::StatusOr<ServerFlags> flags = ParseServerFlags(arguments);
  if (!flags.ok()) return Usage(flags.status());
  if (flags->help) return Print(ServerHelp());
  if (flags->help_markdown) return Print(ServerFlagsMarkdown());
  if (flags->version) return Print(absl::StrCat(kVersion, "\n"));
  ConfigureLog(flags->log_format, flags->log_level);
  const absl::StatusOr<ModelSources> sources = CollectModels(*flags);
  if (absl::IsUnavailable(sources.status())) return Fail(sources.status());
  if (!sources.ok()) return Usage(sources.status());
  return Serve(*flags, *sources);
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  attendant::ReserveStandardStreams();
  // Debian builds Abseil with its deadlock detector, a graph behind one lock that every Mutex of
  // the process takes. The tests keep it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return attendant::Main(std::vector<std::string>(argv + 1, argv + argc));
}
