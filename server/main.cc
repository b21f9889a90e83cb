// SPDX-License-Identifier: Apache-2.0
// attendant-server. Exit codes: 0 after a stop, 1 when it could not start or load any model, 2 for
// a command line that cannot be meant.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/base/thread_annotations.h"
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

// For a thread that the system refuses. Without a catch nothing is unwound: the end of a gRPC that
// has only half its threads waits for ever.
std::terminate_handler other_terminations = nullptr;
[[noreturn]] void OnTerminate() {
  try {
    if (const auto exception = std::current_exception()) std::rethrow_exception(exception);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      EndProcess(Fail(absl::ResourceExhaustedError("the system refuses another thread")));
    }
  } catch (...) {  // as without this handler
  }
  other_terminations();
  std::abort();
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

// Stops the App, once there is one; before, nothing is lost when the process ends. Thread-safe.
class Stopper {
 public:
  explicit Stopper(const ServerFlags& flags) : flags_(flags) {}

  void Stop() {
    absl::MutexLock lock(&mutex_);
    if (app_ == nullptr) EndProcess(0);
    NotifyServiceManager(absl::StrCat("STOPPING=1\nEXTEND_TIMEOUT_USEC=",
                                      absl::ToInt64Microseconds(StopTime(flags_))));
    app_->RequestStop();
  }
  void StartsWith(App* app) {
    absl::MutexLock lock(&mutex_);
    app_ = app;
  }

 private:
  const ServerFlags& flags_;
  absl::Mutex mutex_;
  App* app_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

int Serve(const ServerFlags& flags, const ModelSources& sources) {
  Stopper stopper(flags);
  StopSignals signals;
  signals.Watch([&stopper] { stopper.Stop(); });
  spdlog::info("attendant-server {}", kVersion);
  const absl::StatusOr<std::unique_ptr<App>> app = App::Start(flags, sources);
  if (!app.ok()) return Fail(app.status());
  if (!flags.port_file.empty()) {
    const absl::Status written =
        WritePortFile(flags.port_file, (*app)->grpc_port(), (*app)->http_port());
    if (!written.ok()) EndProcess(Fail(written));  // waits for no load in progress
  }
  stopper.StartsWith(app->get());
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
  other_terminations = std::set_terminate(OnTerminate);
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
