// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
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
  // NOT_FOUND when the folder has neither file; else SafetensorsFile::Open's errors, and
  // INVALID_ARGUMENT for an index that names a file outside the folder or a tensor that is not
  // there.
  static absl::StatusOr<std::unique_ptr<TensorStore>> Open(const std::string& directory);

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

 private:
  TensorStore() = default;
  absl::Status OpenShards(const std::string& directory, const std::string& index_path);
  absl::StatusOr<const SafetensorsFile*> OpenShard(const std::string& directory,
                                                   const std::string& name);

  std::deque<SafetensorsFile> files_;
  std::map<std::string, const SafetensorsFile*> shards_;             // by file name
  std::map<std::string, const StoredTensor*, std::less<>> tensors_;  // by tensor name
  std::vector<std::unique_ptr<float[]>> converted_;
};

}  // namespace attendant
