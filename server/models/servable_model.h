// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/metrics/model_metrics.h"
#include "server/models/memory/model_memory.h"
#include "server/models/model_observer.h"
#include "server/threads/steady_time.h"

namespace attendant {

struct AttentionModel;
struct EncoderModel;

// A model that has loaded and answers: an EncoderModel or an AttentionModel. Immutable except for
// its batcher and its counters. Thread-safe.
//
// Each request shares in its model until it is answered. A model that the registry has given up
// goes on serving such requests, and is freed after the last of them (ModelReaper).
struct ServableModel {
  virtual ~ServableModel() = default;

  // The model itself when it is of that kind, else null.
  virtual EncoderModel* AsEncoder() { return nullptr; }
  virtual AttentionModel* AsAttention() { return nullptr; }

  // REQUIRES: it was loaded from a checkpoint.
  virtual ModelLoadInfo LoadInfo() const = 0;

  // A request came or was answered: the model is not idle.
  void Touch() { last_used_ns = absl::ToUnixNanos(SteadyNow()); }
  absl::Time last_used() const { return absl::FromUnixNanos(last_used_ns); }  // steady clock

  std::string name;
  int64_t version = 1;
  int64_t life_id = 0;  // differs between all models of a ModelReaper, which sets it
  absl::Duration load_time;
  ModelMemory::Share memory;
  std::shared_ptr<ModelMetrics> metrics;
  std::unique_ptr<ModelObserver> observer;
  std::unique_ptr<Batcher> batcher;
  std::atomic<int64_t> last_used_ns{absl::ToUnixNanos(SteadyNow())};
};

}  // namespace attendant
