// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/metrics/server_metrics.h"

namespace attendant {

struct AttentionModel;
struct EncoderModel;

// A model that has loaded and answers: an EncoderModel or an AttentionModel. Immutable except for
// its batcher and its counters. Thread-safe.
struct ServableModel {
  virtual ~ServableModel() = default;

  // The model itself when it is of that kind, else null.
  virtual EncoderModel* AsEncoder() { return nullptr; }
  virtual AttentionModel* AsAttention() { return nullptr; }

  // REQUIRES: it was loaded from a checkpoint.
  virtual ModelLoadInfo LoadInfo() const = 0;

  std::string name;
  absl::Duration load_time;
  ModelMetrics* metrics = nullptr;  // lives as long as ServerMetrics
  std::unique_ptr<BatchObserver> observer;
  std::unique_ptr<Batcher> batcher;
};

}  // namespace attendant
