// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/access/key_store.h"
#include "server/metrics/server_metrics.h"
#include "server/threads/periodic_thread.h"

namespace attendant {

// Files that are read again while the server runs. A fault is logged, and shows in the metrics
// until they can be read.

// Reads the keys again. The log says when they have changed.
void ReloadKeys(KeyStore& keys, ServerMetrics& metrics);

// `status`: how reading the certificates of a port again ended.
void ReportTlsReload(ReloadedFile file, const absl::Status& status, ServerMetrics& metrics);

// Reads the certificates `files` of a port again and again, and reports it. The references must
// outlive the thread.
template <typename Files>
std::unique_ptr<PeriodicThread> ReloadTlsEvery(absl::Duration interval, ReloadedFile file,
                                               Files& files, ServerMetrics& metrics) {
  return std::make_unique<PeriodicThread>("tls-reload", interval, [file, &files, &metrics] {
    ReportTlsReload(file, files.Reload(), metrics);
  });
}

}  // namespace attendant
