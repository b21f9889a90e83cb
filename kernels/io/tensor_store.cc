// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/tensor_store.h"

#include <cstdint>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/float_values.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace {

// A checkpoint of a trillion values has some two hundred. A process may map 65,530 files, and maps
// the stacks of its threads too.
constexpr size_t kMaxShards = 1024;

// A shard is a neighbour of its index: its name is no path.
bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

absl::Status Bad(const StoredTensor& tensor, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(tensor.name), ": ", what));
}

size_t CountElements(const StoredTensor& tensor) {
  size_t elements = 1;
  for (const int64_t dim : tensor.dims) elements *= static_cast<size_t>(dim);
  return elements;
}

absl::Status CheckFinite(const StoredTensor& tensor, std::span<const float> values) {
  const int64_t index = FirstNonFinite(values);
  if (index < 0) return absl::OkStatus();
  return Bad(tensor, absl::StrCat("value ", index, " of ", values.size(), " is ",
                                  values[static_cast<size_t>(index)], ", expected finite numbers"));
}

// How to convert weights that PyTorch pickled, if the folder has such ones.
std::string HintFor(const std::string& directory) {
  std::error_code error;
  const std::filesystem::path folder(directory);
  if (!std::filesystem::exists(folder / "pytorch_model.bin", error) &&
      !std::filesystem::exists(folder / "pytorch_model.bin.index.json", error)) {
    return "";
  }
  return "; pytorch_model.bin is a Python pickle, which is not read. To convert it, run in that "
         "folder: python3 -c \"import glob, torch, safetensors.torch as s; s.save_file({k: "
         "v.clone().contiguous() for f in glob.glob('pytorch_model*.bin') for k, v in "
         "torch.load(f, weights_only=True).items()}, 'model.safetensors')\"";
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorStore>> TensorStore::Open(const std::string& directory) {
  absl::StatusOr<std::unique_ptr<TensorStore>> single =
      OpenFile(absl::StrCat(directory, "/model.safetensors"));
  if (!absl::IsNotFound(single.status())) return single;
  std::unique_ptr<TensorStore> store(new TensorStore);
  const std::string index_path = absl::StrCat(directory, "/model.safetensors.index.json");
  ATTENDANT_RETURN_IF_ERROR(store->OpenShards(directory, index_path));
  return store;
}

absl::StatusOr<std::unique_ptr<TensorStore>> TensorStore::OpenFile(const std::string& path) {
  std::unique_ptr<TensorStore> store(new TensorStore);
  ATTENDANT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  store->files_.push_back(std::move(file));
  for (const StoredTensor& tensor : store->files_.back().tensors()) {
    store->tensors_[tensor.name] = &tensor;
  }
  return store;
}

absl::Status TensorStore::OpenShards(const std::string& directory, const std::string& index_path) {
  absl::StatusOr<JsonNode> index = ReadJsonFile(index_path);
  if (absl::IsNotFound(index.status())) {
    return absl::NotFoundError(absl::StrCat(directory, " has neither model.safetensors nor ",
                                            "model.safetensors.index.json", HintFor(directory)));
  }
  ATTENDANT_RETURN_IF_ERROR(index);
  ATTENDANT_ASSIGN_OR_RETURN(JsonNode weight_map, index->Field("weight_map"));
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::string> names, weight_map.FieldNames());
  for (const std::string& name : names) {
    std::string shard;
    ATTENDANT_RETURN_IF_ERROR(weight_map.Require(name, shard));
    ATTENDANT_ASSIGN_OR_RETURN(const SafetensorsFile* file, OpenShard(directory, shard));
    const StoredTensor* tensor = file->Find(name);
    if (tensor == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(index_path, ": tensor ", Quoted(name), " is not in ", Quoted(shard)));
    }
    tensors_[name] = tensor;
  }
  return absl::OkStatus();
}

absl::StatusOr<const SafetensorsFile*> TensorStore::OpenShard(const std::string& directory,
                                                              const std::string& name) {
  if (auto known = shards_.find(name); known != shards_.end()) return known->second;
  if (!IsPlainFileName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, ": ", Quoted(name), " is not the name of a file in this folder"));
  }
  if (shards_.size() == kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, " has more shards than the limit of ", kMaxShards));
  }
  ATTENDANT_ASSIGN_OR_RETURN(SafetensorsFile file,
                             SafetensorsFile::Open(absl::StrCat(directory, "/", name)));
  files_.push_back(std::move(file));
  return shards_[name] = &files_.back();
}

const StoredTensor* TensorStore::Find(absl::string_view name) const {
  auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

absl::StatusOr<std::span<float>> TensorStore::Convert(const StoredTensor& tensor) {
  const size_t elements = CountElements(tensor);
  std::unique_ptr<float[]> copy(new (std::nothrow) float[elements]);
  if (copy == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("tensor ", Quoted(tensor.name), ": no memory for ", elements, " values"));
  }
  const std::span<float> values(copy.get(), elements);
  const absl::Status status = ConvertToFloat(tensor.dtype, tensor.data, values);
  if (!status.ok()) return Bad(tensor, status.message());
  converted_.push_back(std::move(copy));
  return values;
}

absl::StatusOr<std::span<float>> TensorStore::AddCopy(const std::string& name,
                                                      const StoredTensor& tensor) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::span<float> values, Convert(tensor));
  ATTENDANT_RETURN_IF_ERROR(CheckFinite(tensor, values));
  tensors_[name] = &added_.emplace_back(StoredTensor{
      .name = name, .dtype = "F32", .dims = tensor.dims, .data = std::as_bytes(values)});
  return values;
}

absl::StatusOr<const float*> TensorStore::Floats(const StoredTensor& tensor) {
  const auto* values = reinterpret_cast<const float*>(tensor.data.data());
  const bool aligned = reinterpret_cast<uintptr_t>(tensor.data.data()) % alignof(float) == 0;
  if (tensor.dtype != "F32" || !aligned) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::span<float> copy, Convert(tensor));
    values = copy.data();
  }
  ATTENDANT_RETURN_IF_ERROR(CheckFinite(tensor, {values, CountElements(tensor)}));
  return values;
}

absl::StatusOr<std::vector<float>> TensorStore::Row(const StoredTensor& tensor, int64_t index) {
  const size_t bytes = tensor.data.size() / static_cast<size_t>(tensor.dims[0]);
  std::vector<float> values(static_cast<size_t>(tensor.dims[1]));
  const absl::Status status = ConvertToFloat(
      tensor.dtype, tensor.data.subspan(static_cast<size_t>(index) * bytes, bytes), values);
  if (!status.ok()) return Bad(tensor, status.message());
  ATTENDANT_RETURN_IF_ERROR(CheckFinite(tensor, values));
  return values;
}

}  // namespace attendant
