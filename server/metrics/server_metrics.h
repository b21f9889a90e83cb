// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/metrics/device_sample.h"
#include "server/metrics/metric_labels.h"
#include "server/metrics/model_metrics.h"

namespace attendant {

// Every Prometheus family of the server. metric_families.cc names them, device_metrics.cc and
// process_metrics.cc those of devices and of the process. Thread-safe.
class ServerMetrics {
 public:
  explicit ServerMetrics(absl::string_view version);
  ~ServerMetrics();
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  // The metrics of the model called `name`, made at the first call. REQUIRES: `name` comes from the
  // server's own configuration.
  std::shared_ptr<ModelMetrics> ForModel(const std::string& name);
  // The metrics of the model if ForModel has made them and they were not removed, else null.
  std::shared_ptr<ModelMetrics> FindModel(const std::string& name) const;
  // The model is not served any more: its series go once its metrics are not in use.
  void RemoveModel(const std::string& name);

  // Counts a request for a model that does not exist: requests_total{model=""}.
  void CountUnknownModel(Method method, absl::StatusCode code);

  // A connection to the gRPC port was accepted ("accepted"), or refused for a reason (a
  // RefusalName).
  void CountConnection(absl::string_view result);
  void SetConnections(int64_t open);
  void CountHttpConnection(HttpEnd result);
  void SetReady(bool ready);  // the whole server
  void CountRefused(Refusal reason);
  void CountAccessLogLine(LogLine result);
  void CountSpans(SpanEnd result, int64_t spans);
  void CountSpanExport(bool taken);
  // Records the last reload of a file. `failed`: it could not be read, and the contents from before
  // stay in use.
  void SetReloadFailed(ReloadedFile file, bool failed);

  // Adds a source of device metrics: every scrape calls `source` for the devices of the model,
  // until it returns none.
  void AddDeviceSource(const std::string& model, DeviceSource source);

  // The current values of all models that ForModel knows, by name. Takes tens of microseconds for
  // each.
  std::vector<ModelSample> Sample() const;

  // The Prometheus text exposition format, 0.0.4.
  std::string Scrape() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant
