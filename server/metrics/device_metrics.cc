// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/device_metrics.h"

#include <tuple>
#include <utility>

namespace attendant {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

void AddMetric(MetricFamily& family, std::vector<ClientMetric::Label> labels, double value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;  // the family's type says which of the two is read
  metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

}  // namespace

void DeviceMetrics::Add(const std::string& model, DeviceSource source) {
  absl::MutexLock lock(&mutex_);
  sources_[++last_source_] = {model, std::move(source)};
}

void DeviceMetrics::Forget(int64_t number) const {
  absl::MutexLock lock(&mutex_);
  sources_.erase(number);
}

std::vector<MetricFamily> DeviceMetrics::Collect() const {
  std::map<int64_t, Source> sources;
  {
    absl::MutexLock lock(&mutex_);
    sources = sources_;
  }
  MetricFamily info{
      "attendant_device_info", "1; the labels say what the device is.", MetricType::Gauge, {}};
  MetricFamily memory{"attendant_device_memory_bytes",
                      "Memory of the device: used by any process, and all there is.",
                      MetricType::Gauge,
                      {}};
  MetricFamily busy{"attendant_device_busy_seconds_total",
                    "Time in which the device computed the model's batches. Batches may overlap: "
                    "its rate may exceed 1.",
                    MetricType::Counter,
                    {}};
  MetricFamily groups{"attendant_device_kernel_seconds_total",
                      "Time by group of kernels, of the one batch in many that is timed so "
                      "closely: compare groups with each other.",
                      MetricType::Counter,
                      {}};
  std::map<int, DeviceSample> devices;  // several models may use one
  // A model that has versions, or is being replaced, has several sources.
  std::map<std::tuple<std::string, int>, double> busy_seconds;                // by model and device
  std::map<std::tuple<std::string, int, std::string>, double> group_seconds;  // and group
  for (const auto& [number, source] : sources) {
    const std::string& model = source.model;
    std::vector<DeviceSample> samples = source.devices();
    if (samples.empty()) Forget(number);
    for (DeviceSample& sample : samples) {
      busy_seconds[{model, sample.device}] += sample.busy_seconds;
      for (const auto& [group, seconds] : sample.group_seconds) {
        group_seconds[{model, sample.device, std::string(group)}] += seconds;
      }
      devices[sample.device] = std::move(sample);
    }
  }
  if (devices.empty()) return {};
  for (const auto& [key, seconds] : busy_seconds) {
    const auto& [model, device] = key;
    AddMetric(busy, {{"model", model}, {"device", std::to_string(device)}}, seconds);
  }
  for (const auto& [key, seconds] : group_seconds) {
    const auto& [model, device, group] = key;
    AddMetric(groups, {{"model", model}, {"device", std::to_string(device)}, {"group", group}},
              seconds);
  }
  for (const auto& [index, sample] : devices) {
    const std::string device = std::to_string(index);
    AddMetric(info, {{"device", device}, {"name", sample.name}}, 1);
    AddMetric(memory, {{"device", device}, {"kind", "used"}},
              static_cast<double>(sample.memory_used_bytes));
    AddMetric(memory, {{"device", device}, {"kind", "total"}},
              static_cast<double>(sample.memory_total_bytes));
  }
  return {std::move(info), std::move(memory), std::move(busy), std::move(groups)};
}

}  // namespace attendant
