// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/tensor_store.h"

#include <cstdint>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/float_values.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace {

// A shard is a neighbour of its index: its name is no path.
bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

absl::Status Bad(const StoredTensor& tensor, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(tensor.name), ": ", what));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorStore>> TensorStore::Open(const std::string& directory) {
  std::unique_ptr<TensorStore> store(new TensorStore);
  absl::StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open(absl::StrCat(directory, "/model.safetensors"));
  if (file.ok()) {
    store->files_.push_back(*std::move(file));
    for (const StoredTensor& tensor : store->files_.back().tensors()) {
      store->tensors_[tensor.name] = &tensor;
    }
    return store;
  }
  if (!absl::IsNotFound(file.status())) return file.status();
  const std::string index_path = absl::StrCat(directory, "/model.safetensors.index.json");
  ATTENDANT_RETURN_IF_ERROR(store->OpenShards(directory, index_path));
  return store;
}

absl::Status TensorStore::OpenShards(const std::string& directory, const std::string& index_path) {
  absl::StatusOr<JsonNode> index = ReadJsonFile(index_path);
  if (absl::IsNotFound(index.status())) {
    return absl::NotFoundError(absl::StrCat(directory, " has neither model.safetensors nor ",
                                            "model.safetensors.index.json"));
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
  ATTENDANT_ASSIGN_OR_RETURN(SafetensorsFile file,
                             SafetensorsFile::Open(absl::StrCat(directory, "/", name)));
  files_.push_back(std::move(file));
  return shards_[name] = &files_.back();
}

const StoredTensor* TensorStore::Find(absl::string_view name) const {
  auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

absl::StatusOr<const float*> TensorStore::Floats(const StoredTensor& tensor) {
  size_t elements = 1;
  for (int64_t dim : tensor.dims) elements *= static_cast<size_t>(dim);
  const auto* values = reinterpret_cast<const float*>(tensor.data.data());
  const bool aligned = reinterpret_cast<uintptr_t>(tensor.data.data()) % alignof(float) == 0;
  if (tensor.dtype != "F32" || !aligned) {
    std::unique_ptr<float[]> copy(new (std::nothrow) float[elements]);
    if (copy == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("tensor ", Quoted(tensor.name), ": no memory for ", elements, " values"));
    }
    absl::Status status = ConvertToFloat(tensor.dtype, tensor.data, {copy.get(), elements});
    if (!status.ok()) return Bad(tensor, status.message());
    values = copy.get();
    converted_.push_back(std::move(copy));
  }
  const int64_t index = FirstNonFinite({values, elements});
  if (index >= 0) {
    return Bad(tensor, absl::StrCat("value ", index, " of ", elements, " is ", values[index],
                                    ", expected finite numbers"));
  }
  return values;
}

}  // namespace attendant
