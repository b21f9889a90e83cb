// SPDX-License-Identifier: Apache-2.0
#include "server/app/file_reload.h"

#include <string>

#include "absl/status/statusor.h"
#include "spdlog/spdlog.h"

namespace attendant {

void ReloadKeys(KeyStore& keys, ServerMetrics& metrics) {
  const absl::StatusOr<bool> changed = keys.Reload();
  if (changed.ok() && !*changed) return;  // as at the last time, good or bad
  metrics.SetReloadFailed(ReloadedFile::kApiKeys, !changed.ok());
  if (changed.ok()) {
    spdlog::info("--api_keys: the file has changed, and its keys count from now on");
  } else {
    spdlog::error("--api_keys: {}; the keys read before stay",
                  std::string(changed.status().message()));
  }
}

void ReportTlsReload(ReloadedFile file, const absl::Status& status, ServerMetrics& metrics) {
  metrics.SetReloadFailed(file, !status.ok());
  if (status.ok()) return;
  spdlog::error("TLS of {}: {}; the files read before stay",
                file == ReloadedFile::kHttpTls ? "HTTP" : "gRPC", std::string(status.message()));
}

}  // namespace attendant
