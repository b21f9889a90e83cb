// SPDX-License-Identifier: Apache-2.0
// A folder of an attention module: config.json, a byte 0, model.safetensors. What loads, computes.
#include <cmath>
#include <string>

#include "absl/strings/string_view.h"
#include "kernels/attention/modules/module.h"
#include "kernels/core/check.h"
#include "kernels/checkpoints/attention_module.h"
#include "tests/fuzz/harness.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

constexpr int64_t kMostHidden = 256;

void Load(absl::string_view config, absl::string_view tensors) {
  static const auto& directory = *new TempDirectory;
  WriteFile(directory / "config.json", std::string(config));
  WriteFile(directory / "model.safetensors", std::string(tensors));
  absl::StatusOr<ModuleCheckpoint> checkpoint = LoadAttentionModule(directory.path());
  if (!checkpoint.ok() || checkpoint->config.hidden > kMostHidden) return;
  ATTENDANT_CHECK(ValidateWeights(checkpoint->config, checkpoint->weights).ok());
  const auto module = attention::MakeModule(checkpoint->config, std::move(checkpoint->weights),
                                            DType::kF32, *attention::FindIsa("auto"));
  ATTENDANT_CHECK(module.ok());
  ATTENDANT_CHECK((*module)->weight_bytes() > 0);
}

}  // namespace
}  // namespace attendant

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  if (end != absl::string_view::npos) {
    attendant::Load(input.substr(0, end), input.substr(end + 1));
  }
  return 0;
}
