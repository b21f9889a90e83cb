// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "server/access/key_store.h"
#include "server/metrics/server_metrics.h"

namespace attendant {

// Files that are read again while the server runs. A fault is logged, and shows in the metrics
// until they can be read.

// Reads the keys again. The log says when they have changed.
void ReloadKeys(KeyStore& keys, ServerMetrics& metrics);

// `status`: how reading the certificates of a port again ended.
void ReportTlsReload(ReloadedFile file, const absl::Status& status, ServerMetrics& metrics);

}  // namespace attendant
