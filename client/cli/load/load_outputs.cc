// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/load_outputs.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/load/results/hdr_log.h"
#include "client/load/results/page.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

// Two outputs may go to one device, such as /dev/null.
bool AreOneFile(const std::string& one, const std::string& other) {
  std::error_code none;
  return std::filesystem::equivalent(one, other, none) &&
         std::filesystem::is_regular_file(one, none);
}

}  // namespace

absl::Status LoadOutputs::File::Try(const std::string& file_name) {
  if (file_name.empty()) return absl::OkStatus();
  name = file_name;
  if (std::ofstream(name, std::ios::binary | std::ios::app)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the file ", name, " cannot be written"));
}

std::ostream& LoadOutputs::File::Start() {
  stream = std::make_unique<std::ofstream>(name, std::ios::binary);
  return *stream;
}

absl::Status LoadOutputs::File::Close() {
  if (stream == nullptr) return absl::OkStatus();
  stream->close();
  if (*stream) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the file ", name, " is not complete"));
}

absl::Status LoadOutputs::Open(const std::string& html, const std::string& hlog,
                               const std::string& jsonl) {
  ATTENDANT_RETURN_IF_ERROR(html_.Try(html));
  ATTENDANT_RETURN_IF_ERROR(hlog_.Try(hlog));
  ATTENDANT_RETURN_IF_ERROR(jsonl_.Try(jsonl));
  for (const auto& [one, other] :
       {std::pair(&html, &hlog), std::pair(&html, &jsonl), std::pair(&hlog, &jsonl)}) {
    if (!AreOneFile(*one, *other)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the file ", *one, " is given for two outputs"));
  }
  return absl::OkStatus();
}

std::ostream* LoadOutputs::StartJsonl() { return jsonl_.name.empty() ? nullptr : &jsonl_.Start(); }

absl::Status LoadOutputs::Write(const std::vector<LoadResult>& results,
                                const std::string& summary) {
  if (!html_.name.empty()) html_.Start() << MakePage(results, summary);
  if (!hlog_.name.empty() && !results.empty()) {
    const LoadResult& last = results.back();
    WriteHdrLog(last.start, last.detail, last.summary.window, hlog_.Start());
  }
  ATTENDANT_RETURN_IF_ERROR(html_.Close());
  ATTENDANT_RETURN_IF_ERROR(hlog_.Close());
  return jsonl_.Close();
}

}  // namespace attendant::client
