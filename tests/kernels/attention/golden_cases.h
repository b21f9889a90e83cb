// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/dtype.h"
#include "kernels/io/json_file.h"
#include "kernels/io/safetensors.h"

namespace attendant::attention {

// Results of PyTorch; tests/golden/README.md describes the files.
class GoldenFile {
 public:
  static absl::StatusOr<GoldenFile> Open();

  // cases.json's list of this name.
  absl::StatusOr<std::vector<JsonNode>> Cases(const std::string& list) const;
  // A stored tensor, empty when there is none of this name.
  std::vector<float> Floats(const std::string& name) const;

 private:
  GoldenFile(JsonNode cases, SafetensorsFile tensors)
      : cases_(std::move(cases)), tensors_(std::move(tensors)) {}

  JsonNode cases_;
  SafetensorsFile tensors_;
};

// A case's fields; a missing or wrong one ends the test program.
int64_t Integer(const JsonNode& json, const char* field);
double Number(const JsonNode& json, const char* field);
bool Flag(const JsonNode& json, const char* field);
std::string Text(const JsonNode& json, const char* field);
std::vector<int64_t> Integers(const JsonNode& json, const char* field);

// Every step-th row of [..., dim], as make_golden.py keeps them.
std::vector<float> ChosenRows(const std::vector<float>& values, int64_t dim, int64_t step);

}  // namespace attendant::attention
