// SPDX-License-Identifier: Apache-2.0
// What PyTorch gives for the formulas of additive, Luong, linear and Linformer attention, against
// both ways to compute them.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/attention/registry.h"
#include "kernels/io/float_values.h"
#include "kernels/io/safetensors.h"
#include "tests/kernels/attention/call_support.h"

namespace attendant::attention {
namespace {

constexpr const char* kParameterNames[] = {
    "query_weight", "key_weight",     "score_weight",    "bias",
    "weight",       "key_projection", "value_projection"};

class FamilyGoldenTest : public testing::TestWithParam<std::tuple<Kind, DType>> {
 protected:
  void SetUp() override {
    absl::StatusOr<SafetensorsFile> file =
        SafetensorsFile::Open("tests/golden/attention/family.safetensors");
    ASSERT_TRUE(file.ok()) << file.status();
    file_.emplace(*std::move(file));
  }

  // Empty when there is none.
  std::vector<float> Floats(const std::string& name) const {
    const StoredTensor* tensor = file_->Find(name);
    if (tensor == nullptr || tensor->dtype != "F32") return {};
    std::vector<float> values(tensor->data.size() / sizeof(float));
    EXPECT_TRUE(ConvertToFloat(tensor->dtype, tensor->data, values).ok());
    return values;
  }

  std::vector<uint8_t> Bytes(const std::string& name) const {
    const StoredTensor* tensor = file_->Find(name);
    if (tensor == nullptr || tensor->dtype != "U8") return {};
    const auto* bytes = reinterpret_cast<const uint8_t*>(tensor->data.data());
    return {bytes, bytes + tensor->data.size()};
  }

  // The shape cases of a kind: their inputs' names.
  std::vector<std::string> Inputs(absl::string_view kind) const {
    std::vector<std::string> names;
    for (const StoredTensor& tensor : file_->tensors()) {
      absl::string_view name = tensor.name;
      if (absl::StartsWith(name, absl::StrCat(kind, "_")) && absl::ConsumeSuffix(&name, "/q")) {
        names.emplace_back(name);
      }
    }
    return names;
  }

  // The mask cases of some inputs.
  std::vector<std::string> Masked(const std::string& inputs) const {
    std::vector<std::string> names;
    for (const StoredTensor& tensor : file_->tensors()) {
      absl::string_view name = tensor.name;
      if (absl::StartsWith(name, inputs + "_") && absl::ConsumeSuffix(&name, "/out")) {
        names.emplace_back(name);
      }
    }
    return names;
  }

  std::optional<SafetensorsFile> file_;
};

// The operands of one shape case, ready to be called.
struct GoldenInputs {
  std::vector<std::byte> query, key, value;
  std::map<std::string, std::vector<float>> weights;
  std::vector<Parameter> parameters;
  Call call;
};

TEST_P(FamilyGoldenTest, MatchesPyTorch) {
  const auto [kind, dtype] = GetParam();
  const std::string kind_name = FindOperator(kind)->name;
  int cases = 0;
  for (const std::string& inputs : Inputs(kind_name)) {
    const auto& q = file_->Find(inputs + "/q")->dims;
    const auto& k = file_->Find(inputs + "/k")->dims;
    const auto& v = file_->Find(inputs + "/v")->dims;
    GoldenInputs golden;
    golden.query = Encode(Floats(inputs + "/q"), dtype);
    golden.key = Encode(Floats(inputs + "/k"), dtype);
    golden.value = Encode(Floats(inputs + "/v"), dtype);
    for (const char* name : kParameterNames) {
      const StoredTensor* tensor = file_->Find(absl::StrCat(inputs, "/", name));
      if (tensor == nullptr) continue;
      const std::vector<float>& values = golden.weights[name] = Floats(tensor->name);
      const auto columns = static_cast<int64_t>(tensor->dims.back());
      golden.parameters.push_back(
          {.name = name,
           .values = {values.data(), {static_cast<int64_t>(values.size()) / columns, columns}}});
    }
    golden.call = {.kind = kind,
                   .dtype = dtype,
                   .queries = Sequences::Dense(q[0], q[1]),
                   .keys = Sequences::Dense(k[0], k[1]),
                   .query = InputRows::HeadsFirst(golden.query.data(), 1, q[2], q[1]),
                   .key = InputRows::HeadsFirst(golden.key.data(), 1, k[2], k[1]),
                   .value = InputRows::HeadsFirst(golden.value.data(), 1, v[2], k[1]),
                   .need_weights = WeightsWanted::kPerHead,
                   .parameters = golden.parameters,
                   .isa = BestIsa()};
    for (const std::string& name : Masked(inputs)) {
      SCOPED_TRACE(name);
      ++cases;
      Call call = golden.call;
      const std::vector<uint8_t> keep = Bytes(name + "/mask"), keys = Bytes(name + "/key_mask");
      const std::vector<float> added = Floats(name + "/added");
      if (!keep.empty()) {
        call.mask.tensor = {MaskTensor::Type::kBool, keep.data(), {1, 1, q[1], k[1]}};
      }
      if (!added.empty()) {
        call.mask.tensor = {MaskTensor::Type::kF32, added.data(), {1, 1, q[1], k[1]}};
      }
      if (!keys.empty()) call.mask.keys = {keys.data(), {k[0] * k[1]}};
      call.mask.causal = absl::StrContains(name, "causal");
      if (absl::StrContains(name, "relu")) call.feature_map = FeatureMap::kRelu;
      const std::vector<float> out = Floats(name + "/out"), weights = Floats(name + "/weights");
      ASSERT_FALSE(out.empty());
      for (const auto& answer : {RunCall(call), RunCallByReference(call)}) {
        ASSERT_TRUE(answer.ok()) << answer.status();
        EXPECT_LE(LargestDifference(answer->out, out), dtype == DType::kF32 ? 1e-5 : 1e-2);
        EXPECT_LE(LargestDifference(answer->weights, weights), 1e-5);
      }
      call.need_weights = WeightsWanted::kNone;
      const absl::StatusOr<Answer> alone = RunCall(call);
      ASSERT_TRUE(alone.ok()) << alone.status();
      EXPECT_LE(LargestDifference(alone->out, out), dtype == DType::kF32 ? 1e-5 : 1e-2);
    }
  }
  EXPECT_GE(cases, 8);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FamilyGoldenTest,
                         testing::Combine(testing::Values(Kind::kAdditive, Kind::kLuongDot,
                                                          Kind::kLuongGeneral, Kind::kLuongConcat,
                                                          Kind::kLinear, Kind::kLinformer),
                                          testing::Values(DType::kF32, DType::kBf16)),
                         [](const auto& parameter) {
                           return std::string(FindOperator(std::get<0>(parameter.param))->name) +
                                  "_" + std::string(DTypeName(std::get<1>(parameter.param)));
                         });

}  // namespace
}  // namespace attendant::attention
