// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/cost_meter.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

namespace attendant::client {
namespace {

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// proc(5): after the name in parentheses ten words and numbers, then user and system time in ticks.
double ThreadCpuSeconds(const std::filesystem::path& stat) {
  std::ifstream file(stat);
  file.ignore(std::numeric_limits<std::streamsize>::max(), ')');
  std::string skipped;
  for (int i = 0; i < 11; ++i) file >> skipped;
  double user = 0, system = 0;
  file >> user >> system;
  return file ? (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

std::map<std::string, double> ThreadsCpuSeconds() {
  std::map<std::string, double> seconds;
  std::error_code none;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", none)) {
    seconds[thread.path().filename()] = ThreadCpuSeconds(thread.path() / "stat");
  }
  return seconds;
}

int Processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

CostMeter::CostMeter() : cpu_before_s_(CpuSeconds()), threads_before_s_(ThreadsCpuSeconds()) {}

ClientCost CostMeter::Cost(absl::Duration wall) const {
  ClientCost cost{.cpu_s = CpuSeconds() - cpu_before_s_,
                  .wall_s = absl::ToDoubleSeconds(wall),
                  .processors = Processors()};
  for (const auto& [thread, seconds] : ThreadsCpuSeconds()) {
    const auto before = threads_before_s_.find(thread);
    const double before_s = before == threads_before_s_.end() ? 0 : before->second;
    cost.busiest_thread_s = std::max(cost.busiest_thread_s, seconds - before_s);
  }
  return cost;
}

}  // namespace attendant::client
