// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/m3_heads.h"

#include <array>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/checkpoints/head_fields.h"
#include "kernels/checkpoints/read_tensor.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

absl::StatusOr<LinearWeights> ReadLinear(int64_t outputs, int64_t hidden, TensorStore& store) {
  ATTENDANT_RETURN_IF_ERROR(CheckVectorDims("tensor `weight`", outputs));
  const std::array<int64_t, 2> dims = {outputs, hidden};
  const std::array<int64_t, 1> bias_dims = {outputs};
  constexpr absl::string_view kSource = "the encoder makes it";
  ATTENDANT_ASSIGN_OR_RETURN(const float* weight, ReadTensor(store, "weight", dims, kSource));
  ATTENDANT_ASSIGN_OR_RETURN(const float* bias, ReadTensor(store, "bias", bias_dims, kSource));
  return LinearWeights{.weight = {weight, dims}, .bias = {bias, bias_dims}};
}

std::string HowToConvert(const std::string& path) {
  return absl::StrCat(path,
                      ".pt is a pickle, which is not read. Convert it: python3 -c \"import torch, "
                      "safetensors.torch as s; s.save_file(torch.load('",
                      path, ".pt', map_location='cpu'), '", path, ".safetensors')\"");
}

// `path` is without the file's suffix, `outputs` 0: as many as the file has.
absl::Status ReadHead(const std::string& path, int64_t outputs, int64_t hidden, TokenHead head,
                      std::vector<TokenHead>& heads, std::vector<UnreadHead>& unread) {
  absl::StatusOr<std::unique_ptr<TensorStore>> opened =
      TensorStore::OpenFile(absl::StrCat(path, ".safetensors"));
  if (absl::IsNotFound(opened.status())) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool is_pickle, IsFile(absl::StrCat(path, ".pt")));
    if (is_pickle) {
      unread.push_back({.kind = head.kind, .reason = HowToConvert(path)});
    }
    return absl::OkStatus();
  }
  ATTENDANT_RETURN_IF_ERROR(opened);
  const std::shared_ptr<TensorStore> store = *std::move(opened);
  const StoredTensor* weight = store->Find("weight");
  if (outputs == 0 && weight != nullptr && !weight->dims.empty()) outputs = weight->dims[0];
  absl::StatusOr<LinearWeights> linear = ReadLinear(outputs, hidden, *store);
  if (!linear.ok()) {
    return absl::Status(linear.status().code(),
                        absl::StrCat(path, ".safetensors: ", linear.status().message()));
  }
  head.out = *linear;
  head.storage = store;
  heads.push_back(std::move(head));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadM3Heads(const std::string& directory, int64_t hidden,
                         std::vector<TokenHead>& heads, std::vector<UnreadHead>& unread) {
  ATTENDANT_RETURN_IF_ERROR(ReadHead(directory + "/sparse_linear", 1, hidden,
                                     {.kind = TokenHeadKind::kTokenWeights}, heads, unread));
  return ReadHead(directory + "/colbert_linear", 0, hidden,
                  {.kind = TokenHeadKind::kVectors, .options = {.skip_first = true}}, heads,
                  unread);
}

}  // namespace attendant
