// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/load_outputs.h"

#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/files/output_file.h"
#include "client/load/results/hdr_log.h"
#include "client/load/results/page.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

// Two outputs may go to one device, such as /dev/null.
bool AreOneFile(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code none;
  if (one.empty() || other.empty()) return false;
  if (std::filesystem::exists(one, none)) {
    return std::filesystem::equivalent(one, other, none) &&
           std::filesystem::is_regular_file(one, none);
  }
  return std::filesystem::weakly_canonical(one, none) ==
         std::filesystem::weakly_canonical(other, none);
}

}  // namespace

absl::Status LoadOutputs::Open(const std::string& html, const std::string& hlog,
                               const std::string& jsonl) {
  for (const std::string* path : {&html, &hlog, &jsonl}) {
    ATTENDANT_RETURN_IF_ERROR(CheckWritable(*path));
  }
  for (const auto& [one, other] :
       {std::pair(&html, &hlog), std::pair(&html, &jsonl), std::pair(&hlog, &jsonl)}) {
    if (!AreOneFile(*one, *other)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the file ", *one, " is given for two outputs"));
  }
  html_ = html;
  hlog_ = hlog;
  jsonl_ = jsonl;
  return absl::OkStatus();
}

std::ostream* LoadOutputs::StartJsonl() {
  if (jsonl_.empty()) return nullptr;
  calls_.open(jsonl_, std::ios::binary);
  return &calls_;
}

absl::Status LoadOutputs::Write(const std::vector<LoadResult>& results,
                                const std::string& summary) {
  if (!html_.empty()) ATTENDANT_RETURN_IF_ERROR(WriteFile(html_, MakePage(results, summary)));
  if (!hlog_.empty() && !results.empty()) {
    const LoadResult& last = results.back();
    std::ostringstream log;
    WriteHdrLog(last.start, last.detail, last.summary.window, log);
    ATTENDANT_RETURN_IF_ERROR(WriteFile(hlog_, log.str()));
  }
  if (!calls_.is_open()) return absl::OkStatus();
  calls_.close();
  if (calls_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the file ", jsonl_, " is not complete"));
}

}  // namespace attendant::client
