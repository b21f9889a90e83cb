// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/adapters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "kernels/checkpoints/read_tensor.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

constexpr absl::string_view kOriginal = ".parametrizations.weight.original";

// The adapters' properties that all weights share.
struct Adapters {
  int64_t count = 0, rank = 0;
  int64_t chosen = 0;
  float scale = 0;
};

absl::Status NoAdapter(const JsonNode& config, absl::string_view adapter,
                       const std::vector<std::string>& names) {
  const std::string there = absl::StrJoin(
      names, ", ", [](std::string* out, const auto& name) { out->append(Quote(name)); });
  return absl::InvalidArgumentError(absl::StrCat(
      "the adapter ", Quote(adapter), " is unknown: ", config.where(), " has ",
      names.empty() ? "no adapters (`lora_adaptations`)" : absl::StrCat("the adapters ", there)));
}

absl::StatusOr<Adapters> ReadAdapters(const JsonNode& config, absl::string_view adapter,
                                      const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), adapter);
  if (found == names.end()) return NoAdapter(config, adapter, names);
  constexpr int64_t kMaxRank = 1 << 16;
  Adapters adapters{.count = static_cast<int64_t>(names.size()),
                    .rank = 4,
                    .chosen = std::distance(names.begin(), found)};
  double alpha = 1;
  ATTENDANT_RETURN_IF_ERROR(config.Read("lora_rank", adapters.rank));
  ATTENDANT_RETURN_IF_ERROR(config.Read("lora_alpha", alpha));
  if (adapters.rank < 1 || adapters.rank > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.where(), ": `lora_rank` is ", adapters.rank, ", it must be from 1 to ", kMaxRank));
  }
  const double scale = alpha / static_cast<double>(adapters.rank);
  if (!(std::abs(scale) <= std::numeric_limits<float>::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.where(), ": `lora_alpha` is ", alpha, ", it does not fit in f32"));
  }
  adapters.scale = static_cast<float>(scale);
  return adapters;
}

// The two factors of one adapter's change to a weight: left [rows, rank], right [rank, columns].
struct Factors {
  const float* left = nullptr;
  const float* right = nullptr;
};

absl::StatusOr<Factors> ReadFactors(const std::string& path, const Adapters& adapters, int64_t rows,
                                    int64_t columns, TensorStore& store) {
  const bool table = absl::EndsWith(path, "embeddings");
  const std::string stem = absl::StrCat(path, ".parametrizations.weight.0.lora_");
  const std::array<int64_t, 3> left_dims = {adapters.count, rows, adapters.rank};
  const std::array<int64_t, 3> right_dims = {adapters.count, adapters.rank, columns};
  constexpr absl::string_view kSource = "the weight and the config make it";
  ATTENDANT_ASSIGN_OR_RETURN(
      const float* left,
      ReadTensor(store, absl::StrCat(stem, table ? "A" : "B"), left_dims, kSource));
  ATTENDANT_ASSIGN_OR_RETURN(
      const float* right,
      ReadTensor(store, absl::StrCat(stem, table ? "B" : "A"), right_dims, kSource));
  return Factors{.left = left + adapters.chosen * rows * adapters.rank,
                 .right = right + adapters.chosen * adapters.rank * columns};
}

// weight [rows, columns] += scale * left right
void AddProduct(const Factors& factors, const Adapters& adapters, int64_t rows, int64_t columns,
                float* weight) {
  std::vector<float> change(static_cast<size_t>(columns));
  for (int64_t row = 0; row < rows; ++row, weight += columns) {
    std::fill(change.begin(), change.end(), 0.0f);
    for (int64_t k = 0; k < adapters.rank; ++k) {
      const float factor = factors.left[row * adapters.rank + k];
      const float* right = factors.right + k * columns;
      for (int64_t i = 0; i < columns; ++i) change[static_cast<size_t>(i)] += factor * right[i];
    }
    for (int64_t i = 0; i < columns; ++i) {
      weight[i] += adapters.scale * change[static_cast<size_t>(i)];
    }
  }
}

absl::Status MergeWeight(const std::string& path, const Adapters& adapters, TensorStore& store) {
  const std::string original = absl::StrCat(path, kOriginal);
  const StoredTensor& stored = *store.Find(original);
  if (stored.dims.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("tensor `", original, "` has shape [",
                                                   absl::StrJoin(stored.dims, ", "),
                                                   "], adapters need a matrix"));
  }
  const int64_t rows = stored.dims[0], columns = stored.dims[1];
  ATTENDANT_ASSIGN_OR_RETURN(const Factors factors,
                             ReadFactors(path, adapters, rows, columns, store));
  ATTENDANT_ASSIGN_OR_RETURN(const std::span<float> weight,
                             store.AddCopy(absl::StrCat(path, ".weight"), stored));
  AddProduct(factors, adapters, rows, columns, weight.data());
  return absl::OkStatus();
}

// The paths of the weights that take adapters.
absl::StatusOr<std::vector<std::string>> FindPaths(const TensorStore& store) {
  std::vector<std::string> paths;
  for (const auto& [name, tensor] : store.tensors()) {
    if (!TakesAdapters(name)) continue;
    paths.emplace_back(absl::StripSuffix(name, kOriginal));
    const std::string plain = absl::StrCat(paths.back(), ".weight");
    if (store.Find(plain) != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensors `", name, "` and `", plain, "` are both there"));
    }
  }
  return paths;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadAdapterNames(const JsonNode& config) {
  std::vector<std::string> names;
  if (!config.Has("lora_adaptations")) return names;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode list, config.Field("lora_adaptations"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, list.Elements());
  for (const JsonNode& element : elements) {
    ATTENDANT_RETURN_IF_ERROR(element.Get(names.emplace_back()));
  }
  return names;
}

absl::Status MergeAdapter(const JsonNode& config, absl::string_view adapter, TensorStore& store) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindPaths(store));
  if (adapter.empty()) {
    for (const std::string& path : paths) {
      store.AddName(absl::StrCat(path, ".weight"), *store.Find(absl::StrCat(path, kOriginal)));
    }
    return absl::OkStatus();
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, ReadAdapterNames(config));
  ATTENDANT_ASSIGN_OR_RETURN(const Adapters adapters, ReadAdapters(config, adapter, names));
  if (paths.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no tensor has adapters, the adapter ", Quote(adapter), " changes nothing"));
  }
  for (const std::string& path : paths) {
    ATTENDANT_RETURN_IF_ERROR(MergeWeight(path, adapters, store));
  }
  return absl::OkStatus();
}

absl::Status CheckNoPeftAdapter(const std::string& directory) {
  const std::string path = directory + "/adapter_config.json";
  ATTENDANT_ASSIGN_OR_RETURN(const bool there, IsFile(path));
  if (!there) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      path,
      ": an adapter of PEFT beside the weights is not supported; save the model with the "
      "adapter merged (`merge_and_unload`)"));
}

bool TakesAdapters(absl::string_view tensor) { return absl::EndsWith(tensor, kOriginal); }

}  // namespace attendant
