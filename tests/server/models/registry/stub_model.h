// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "server/models/servable_model.h"

namespace attendant {

// A model without weights, queue and threads, for tables.
struct StubModel final : ServableModel {
  explicit StubModel(const std::string& model_name, int64_t model_version = 1) {
    name = model_name;
    version = model_version;
  }
  ModelLoadInfo LoadInfo() const override { return {}; }
};

}  // namespace attendant
