// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/io/safetensors.h"

namespace attendant {

// A checkpoint folder's tensors, wherever they are: in `model.safetensors`, or in the shards that
// `model.safetensors.index.json` lists. Keeps the files mapped and the converted values.
// Thread-compatible.
class TensorStore {
 public:
  // NOT_FOUND when the folder has neither file, with a way to convert pytorch_model.bin where that
  // is there; else SafetensorsFile::Open's errors, and INVALID_ARGUMENT for an index that names a
  // file outside the folder, a tensor that is not there or more than 1,024 files.
  static absl::StatusOr<std::unique_ptr<TensorStore>> Open(const std::string& directory);
  // Opens the tensors of one file alone. Errors are SafetensorsFile::Open's.
  static absl::StatusOr<std::unique_ptr<TensorStore>> OpenFile(const std::string& path);

  const StoredTensor* Find(absl::string_view name) const;  // nullptr: no such tensor

  // Every tensor, by its name.
  const std::map<std::string, const StoredTensor*, std::less<>>& tensors() const {
    return tensors_;
  }

  // A tensor's values as f32, valid as long as this store: in the mapped file itself when they are
  // f32 and aligned there, else converted. REQUIRES: `tensor` came from Find. INVALID_ARGUMENT when
  // the dtype is no float or a value is not finite; RESOURCE_EXHAUSTED when a converted copy does
  // not fit in memory.
  absl::StatusOr<const float*> Floats(const StoredTensor& tensor);

  // The values of row `index` alone. REQUIRES: `tensor` came from Find and has two dimensions, and
  // the row is there. Errors are Floats's.
  static absl::StatusOr<std::vector<float>> Row(const StoredTensor& tensor, int64_t index);

  // Gives a tensor another name too. REQUIRES: `tensor` came from Find.
  void AddName(const std::string& name, const StoredTensor& tensor) { tensors_[name] = &tensor; }
  // Adds the tensor `name`: an f32 copy of `tensor`, valid as long as this store, which the caller
  // may change until Floats reads it. REQUIRES: `tensor` came from Find. Errors are Floats's.
  absl::StatusOr<std::span<float>> AddCopy(const std::string& name, const StoredTensor& tensor);

 private:
  TensorStore() = default;
  absl::Status OpenShards(const std::string& directory, const std::string& index_path);
  absl::StatusOr<const SafetensorsFile*> OpenShard(const std::string& directory,
                                                   const std::string& name);
  // An f32 copy, which lives as long as this store.
  absl::StatusOr<std::span<float>> Convert(const StoredTensor& tensor);

  std::deque<SafetensorsFile> files_;
  std::map<std::string, const SafetensorsFile*> shards_;             // by file name
  std::map<std::string, const StoredTensor*, std::less<>> tensors_;  // by tensor name
  std::vector<std::unique_ptr<float[]>> converted_;
  std::deque<StoredTensor> added_;  // of AddCopy
};

}  // namespace attendant
