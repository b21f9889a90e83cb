// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/attention/golden_cases.h"

#include <utility>

#include "kernels/core/check.h"
#include "kernels/io/float_values.h"

namespace attendant::attention {
namespace {

constexpr char kFolder[] = "tests/golden/attention/";

template <typename T>
T Required(const JsonNode& json, const char* field) {
  T value{};
  const absl::Status status = json.Require(field, value);
  ATTENDANT_CHECK(status.ok());
  return value;
}

}  // namespace

absl::StatusOr<GoldenFile> GoldenFile::Open() {
  absl::StatusOr<JsonNode> cases = ReadJsonFile(std::string(kFolder) + "cases.json");
  if (!cases.ok()) return cases.status();
  absl::StatusOr<SafetensorsFile> tensors =
      SafetensorsFile::Open(std::string(kFolder) + "golden.safetensors");
  if (!tensors.ok()) return tensors.status();
  return GoldenFile(*std::move(cases), *std::move(tensors));
}

absl::StatusOr<std::vector<JsonNode>> GoldenFile::Cases(const std::string& list) const {
  absl::StatusOr<JsonNode> node = cases_.Field(list);
  if (!node.ok()) return node.status();
  return node->Elements();
}

std::vector<float> GoldenFile::Floats(const std::string& name) const {
  const StoredTensor* tensor = tensors_.Find(name);
  if (tensor == nullptr) return {};
  std::vector<float> values(tensor->data.size() / (tensor->dtype == "F32" ? 4 : 2));
  ATTENDANT_CHECK(ConvertToFloat(tensor->dtype, tensor->data, values).ok());
  return values;
}

int64_t Integer(const JsonNode& json, const char* field) { return Required<int64_t>(json, field); }
double Number(const JsonNode& json, const char* field) { return Required<double>(json, field); }
bool Flag(const JsonNode& json, const char* field) { return Required<bool>(json, field); }
std::string Text(const JsonNode& json, const char* field) {
  return Required<std::string>(json, field);
}

std::vector<int64_t> Integers(const JsonNode& json, const char* field) {
  absl::StatusOr<JsonNode> node = json.Field(field);
  ATTENDANT_CHECK(node.ok());
  absl::StatusOr<std::vector<JsonNode>> elements = node->Elements();
  ATTENDANT_CHECK(elements.ok());
  std::vector<int64_t> values(elements->size());
  for (size_t i = 0; i < values.size(); ++i) ATTENDANT_CHECK((*elements)[i].Get(values[i]).ok());
  return values;
}

std::vector<float> ChosenRows(const std::vector<float>& values, int64_t dim, int64_t step) {
  std::vector<float> chosen;
  for (auto row = values.begin(); row < values.end();) {
    chosen.insert(chosen.end(), row, row + dim);
    row += std::min<int64_t>(step * dim, values.end() - row);
  }
  return chosen;
}

}  // namespace attendant::attention
