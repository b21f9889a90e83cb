// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "client/flags/flag_parser.h"
#include "client/load/driver.h"
#include "client/load/protocols/protocols.h"
#include "client/load/results/objective.h"

namespace attendant::client {

// The flags of `attendant load`, and the load that they ask for.
class LoadSetup {
 public:
  void AddTo(FlagParser& flags);

  // Reads the files and checks the flags against each other. FAILED_PRECONDITION names the flag.
  // The members below are set after it.
  absl::Status Prepare();

  absl::StatusOr<Target> MakeTarget() const;
  // "attendant.v1", "KServe v2, streaming"
  std::string protocol_title() const;
  int64_t model_version() const { return target_.model_version; }
  // "1 sequence per request, random ids, lengths mixed"; `words` as Target::sends_words.
  std::string DescribePayload(bool words) const;

  CommonFlags common;
  LoadPlan plan{.warmup = absl::Seconds(2)};
  double confidence_percent = 0;  // stop when latency is known so well; 0: do not
  bool live = false;
  std::vector<double> sweep_rates;  // not empty: one load for each
  bool find_max = false;
  std::vector<Condition> objectives;  // of find_max
  std::vector<Condition> failures;    // --fail_if
  std::string html_file, hlog_file, jsonl_file;

 private:
  void AddPlanFlags(FlagParser& flags);
  void AddRequestFlags(FlagParser& flags);
  void AddVerdictFlags(FlagParser& flags);
  void AddOutputFlags(FlagParser& flags);
  // Refuses flags of the other loop, which would do nothing.
  absl::Status CheckLoop(bool open) const;
  // Refuses flags of other protocols, and of random sequences where there are texts or a trace.
  absl::Status CheckRequestFlags() const;
  absl::Status PrepareArrivals();
  absl::Status PrepareTrace();
  absl::Status PrepareRequests();
  absl::Status PrepareVerdicts();
  absl::Status PrepareSweep();

  std::string protocol_ = "attendant";
  TargetSpec target_;
  int64_t concurrency_ = 8;
  int64_t max_outstanding_ = 10000;
  absl::Duration duration_ = absl::ZeroDuration();
  std::string arrivals_ = "poisson";
  std::string replay_file_;
  double speed_ = 1;
  std::string texts_file_;
  std::string lengths_ = "mixed";
  std::string sweep_;
  std::vector<std::string> slo_, fail_if_;
};

}  // namespace attendant::client
