// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace attendant {

// The contents of a model's folder, and whether a server can serve it. Fields that could not be
// read are empty.
struct FolderReport {
  // The memory of the model on the CPU with one worker of one thread.
  struct Memory {
    std::string dtype;       // "bf16"
    int64_t held_bytes = 0;  // while it serves
    int64_t peak_bytes = 0;  // while it loads
  };

  absl::Status status;     // OK: it can be served; else the reason why not
  bool is_module = false;  // an attention module, not an encoder

  std::string model_type, architecture;  // as config.json names them
  // "embed", "encode", "classify", "rerank", "attend", and what heads on tokens make (TaskName).
  std::vector<std::string> tasks;
  bool takes_text = false;  // false: token ids only
  int64_t layers = 0, heads = 0, hidden = 0, vocab = 0;
  int64_t max_sequence_tokens = 0, max_text_tokens = 0;
  int64_t embedding_dims = 0;
  std::string pooling;  // "mean"; of several, "cls+mean"
  bool normalize = false;
  std::vector<std::string> prompt_names;
  std::string default_prompt_name;
  std::vector<std::string> labels;
  std::vector<std::string> token_labels;
  std::vector<std::string> adapters;  // of which a server merges one into the weights
  std::vector<Memory> memory;         // of an encoder
};

// Reads the folder, weights too, as a server does when it loads the model; no flag of a server
// cuts its sequences. Starts nothing.
FolderReport InspectFolder(const std::string& directory);

}  // namespace attendant
