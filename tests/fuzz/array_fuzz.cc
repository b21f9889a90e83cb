// SPDX-License-Identifier: Apache-2.0
// What `attendant attend` reads: a .npy file, or else a .safetensors file.
#include "client/cli/files/npy.h"
#include "client/cli/files/safetensors.h"
#include "kernels/core/check.h"
#include "tests/fuzz/harness.h"

namespace attendant::client {
namespace {

void CheckArray(const Array& array) {
  const absl::StatusOr<int64_t> count = CountValues(array.shape, "array");
  ATTENDANT_CHECK(count.ok() && *count == static_cast<int64_t>(array.values.size()));
}

void Read(absl::string_view bytes) {
  if (const absl::StatusOr<Array> array = ParseNpy(bytes, "x.npy"); array.ok()) CheckArray(*array);
  const auto arrays = ParseSafetensors(bytes, "x.safetensors");
  if (!arrays.ok()) return;
  for (const auto& [name, array] : *arrays) CheckArray(array);
}

}  // namespace
}  // namespace attendant::client

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attendant::client::Read({reinterpret_cast<const char*>(data), size});
  return 0;
}
