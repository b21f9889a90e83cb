// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace attendant {
namespace {

using Families = std::vector<prometheus::MetricFamily>;

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void Append(Families& families, const char* name, const char* help, prometheus::MetricType type,
            double value) {
  prometheus::ClientMetric metric;
  if (type == prometheus::MetricType::Counter) metric.counter.value = value;
  if (type == prometheus::MetricType::Gauge) metric.gauge.value = value;
  families.push_back({name, help, type, {std::move(metric)}});
}

void AppendGauge(Families& families, const char* name, const char* help, double value) {
  Append(families, name, help, prometheus::MetricType::Gauge, value);
}

// The fields of /proc/self/stat from the third on, numbered as proc(5) does. The second, the
// program's name in parentheses, may itself hold blanks and parentheses.
class StatFields {
 public:
  StatFields() : text_(ReadFile("/proc/self/stat")) {
    const size_t name_end = text_.rfind(')');
    if (name_end == std::string::npos) return;
    fields_ = absl::StrSplit(absl::string_view(text_).substr(name_end + 1), absl::ByAnyChar(" \n"),
                             absl::SkipEmpty());
  }

  std::optional<double> operator[](size_t number) const {
    double value = 0;
    const size_t index = number - 3;
    if (index >= fields_.size() || !absl::SimpleAtod(fields_[index], &value)) return std::nullopt;
    return value;
  }

 private:
  std::string text_;
  std::vector<absl::string_view> fields_;
};

// Seconds since the epoch at which the machine started; what /proc's start times are counted from.
std::optional<double> BootTime() {
  const std::string stat = ReadFile("/proc/stat");
  for (absl::string_view line : absl::StrSplit(stat, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    double seconds = 0;
    if (words.size() == 2 && words[0] == "btime" && absl::SimpleAtod(words[1], &seconds)) {
      return seconds;
    }
  }
  return std::nullopt;
}

void AppendStat(Families& families) {
  const StatFields stat;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (const auto user = stat[14], system = stat[15]; user && system) {
    Append(families, "process_cpu_seconds_total", "User and system CPU time spent.",
           prometheus::MetricType::Counter, (*user + *system) / ticks);
  }
  if (const auto threads = stat[20]) {
    AppendGauge(families, "process_threads", "Threads of the process.", *threads);
  }
  if (const auto start = stat[22], boot = BootTime(); start && boot) {
    AppendGauge(families, "process_start_time_seconds",
                "When the process started, since the epoch.", *boot + *start / ticks);
  }
  if (const auto bytes = stat[23]) {
    AppendGauge(families, "process_virtual_memory_bytes", "Virtual memory size.", *bytes);
  }
  if (const auto pages = stat[24]) {
    AppendGauge(families, "process_resident_memory_bytes", "Resident memory size.",
                *pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
  }
}

void AppendFileDescriptors(Families& families) {
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
  int64_t open = -1;  // the listing's own
  for (; !error && entry != end; entry.increment(error)) ++open;
  if (!error && open >= 0) {
    AppendGauge(families, "process_open_fds", "Open file descriptors.", static_cast<double>(open));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    AppendGauge(families, "process_max_fds", "Most file descriptors that may be open.",
                static_cast<double>(limit.rlim_cur));
  }
}

}  // namespace

Families ProcessMetrics::Collect() const {
  Families families;
  AppendStat(families);
  AppendFileDescriptors(families);
  return families;
}

}  // namespace attendant
