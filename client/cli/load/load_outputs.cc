// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/load_outputs.h"

#include "absl/strings/str_cat.h"
#include "client/load/results/hdr_log.h"
#include "client/load/results/page.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {

absl::Status LoadOutputs::File::Open(const std::string& file_name) {
  if (file_name.empty()) return absl::OkStatus();
  name = file_name;
  stream = std::make_unique<std::ofstream>(name, std::ios::binary);
  if (*stream) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the file ", name, " cannot be written"));
}

absl::Status LoadOutputs::File::Close() {
  if (stream == nullptr) return absl::OkStatus();
  stream->close();
  if (*stream) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the file ", name, " is not complete"));
}

absl::Status LoadOutputs::Open(const std::string& html, const std::string& hlog,
                               const std::string& jsonl) {
  ATTENDANT_RETURN_IF_ERROR(html_.Open(html));
  ATTENDANT_RETURN_IF_ERROR(hlog_.Open(hlog));
  return jsonl_.Open(jsonl);
}

absl::Status LoadOutputs::Write(const std::vector<LoadResult>& results,
                                const std::string& summary) {
  if (html_.stream != nullptr) *html_.stream << MakePage(results, summary);
  if (hlog_.stream != nullptr && !results.empty()) {
    const LoadResult& last = results.back();
    WriteHdrLog(last.start, last.detail, last.summary.window, *hlog_.stream);
  }
  ATTENDANT_RETURN_IF_ERROR(html_.Close());
  ATTENDANT_RETURN_IF_ERROR(hlog_.Close());
  return jsonl_.Close();
}

}  // namespace attendant::client
