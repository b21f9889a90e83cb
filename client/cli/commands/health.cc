// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/input.h"

namespace attendant::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr absl::Duration kPollInterval = absl::Milliseconds(200);

std::string Name(ServingStatus status) {
  switch (status) {
    case ServingStatus::kServing:
      return "SERVING";
    case ServingStatus::kNotServing:
      return "NOT_SERVING";
    case ServingStatus::kUnknown:
      break;
  }
  return "UNKNOWN";
}

bool IsServing(const absl::StatusOr<ServingStatus>& status) {
  return status.ok() && *status == ServingStatus::kServing;
}

class HealthCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.Add("service", &service_, "NAME", "A model's name; without it, the whole server");
    flags.Add("wait", &wait_, "DURATION", "Longest time to wait until it serves; not with --watch");
    flags.AddSwitch("watch", &watch_, "Print the status now and after every change");
    common_.connect.timeout = absl::Seconds(5);
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    if (!arguments.empty()) return UsageError("health takes no arguments: name a --service", io);
    const absl::Status named = CheckFlagUtf8("service", service_);
    if (!named.ok()) return UsageError(named.message(), io);
    if (wait_ < absl::ZeroDuration()) return UsageError("--wait cannot be negative", io);
    if (watch_ && wait_ > absl::ZeroDuration()) {
      return UsageError("--watch and --wait exclude each other: --watch has no end", io);
    }
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(common_.connect);
    if (!client.ok()) return UsageError(client.status().message(), io);
    if (watch_) return Watch(**client, io);
    const absl::StatusOr<ServingStatus> status = Check(**client);
    if (!status.ok()) return CallError(status.status(), common_.connect, io);
    Write(*status, io);
    return IsServing(status) ? kExitOk : kExitServerError;
  }

 private:
  absl::StatusOr<ServingStatus> Check(Client& client) const {
    if (wait_ == absl::ZeroDuration()) return client.Health(service_);
    const Clock::time_point start = Clock::now();
    const auto left = [&] { return wait_ - absl::FromChrono(Clock::now() - start); };
    while (true) {
      absl::StatusOr<ServingStatus> status =
          client.Health(service_, std::max(left(), kPollInterval));
      if (IsServing(status) || left() <= kPollInterval) return status;
      absl::SleepFor(kPollInterval);
    }
  }

  int Watch(Client& client, Io& io) const {
    const absl::Status status = client.WatchHealth(service_, [&](ServingStatus now) {
      Write(now, io);
      io.out.flush();
      return static_cast<bool>(io.out);
    });
    return status.ok() ? kExitUsage : CallError(status, common_.connect, io);
  }

  void Write(ServingStatus status, Io& io) const {
    if (common_.json) {
      io.out << Dump(nlohmann::ordered_json{{"service", service_}, {"status", Name(status)}});
    } else {
      io.out << Name(status);
    }
    io.out << "\n";
  }

  CommonFlags common_;
  std::string service_;
  absl::Duration wait_ = absl::ZeroDuration();
  bool watch_ = false;
};

}  // namespace

CommandInfo HealthCommandInfo() {
  return {.name = "health",
          .summary = "Tells whether the server or one model is serving",
          .arguments = "",
          .details =
              "Exits with 0 only when the status is SERVING.\n\n"
              "  attendant health --wait 60s && attendant embed \"Hello\"\n",
          .make = []() -> std::unique_ptr<Command> { return std::make_unique<HealthCommand>(); }};
}

}  // namespace attendant::client
