// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "server/metrics/metric_families.h"
#include "server/metrics/model_metrics.h"

namespace attendant {

// The series of a model in `families`, which must outlive them; they leave it together. REQUIRES:
// no other series of this model.
std::shared_ptr<ModelMetrics> MakeModelSeries(MetricFamilies& families, const std::string& model);

}  // namespace attendant
