// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/family.h"
#include "prometheus/labels.h"

namespace attendant {

// A time series that is made at its first use. Thread-safe: making a series twice gives the same
// one.
template <typename Metric>
class LazySeries {
 public:
  template <typename Make>
  Metric& Get(const Make& make) {
    Metric* metric = metric_.load(std::memory_order_acquire);
    if (metric == nullptr) {
      metric = &make();
      metric_.store(metric, std::memory_order_release);
    }
    return *metric;
  }
  // Null before its first use.
  Metric* Find() const { return metric_.load(std::memory_order_acquire); }

 private:
  std::atomic<Metric*> metric_{nullptr};
};

// Series that leave their families together. Thread-safe.
class SeriesSet {
 public:
  ~SeriesSet() {
    for (const auto& [metric, remove] : removals_) remove();
  }

  template <typename Metric, typename... Arguments>
  Metric& Add(prometheus::Family<Metric>& family, const prometheus::Labels& labels,
              const Arguments&... arguments) {
    Metric& metric = family.Add(labels, arguments...);
    absl::MutexLock lock(&mutex_);
    removals_[&metric] = [&family, &metric] { family.Remove(&metric); };
    return metric;
  }

  void Remove(const void* metric) {
    absl::MutexLock lock(&mutex_);
    const auto found = removals_.find(metric);
    if (found == removals_.end()) return;
    found->second();
    removals_.erase(found);
  }

 private:
  absl::Mutex mutex_;
  std::map<const void*, std::function<void()>> removals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
