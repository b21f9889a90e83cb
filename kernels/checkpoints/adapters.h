// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

class JsonNode;
class TensorStore;

// Task adapters (LoRA) as the code of Jina v3 keeps them, in the parametrizations of PyTorch. A
// weight PATH.weight [rows, columns] is stored as
//
//   PATH.parametrizations.weight.original   [rows, columns]
//   PATH.parametrizations.weight.0.lora_A   [adapters, rank, columns]
//   PATH.parametrizations.weight.0.lora_B   [adapters, rows, rank]
//
// A table, whose PATH ends in "embeddings", has A [adapters, rows, rank] and B [adapters, rank,
// columns]. config.json has the adapters' names, `lora_adaptations`, and `lora_rank` and
// `lora_alpha`.

// The names in their order; empty where the config has none. INVALID_ARGUMENT for what is no list
// of names.
absl::StatusOr<std::vector<std::string>> ReadAdapterNames(const JsonNode& config);

// Gives each such weight of `store` its name PATH.weight: as it is stored where `adapter` is empty,
// else plus alpha / rank times B x A of that adapter, of a table A x B, summed in f32. A merged
// weight is an f32 copy, and lives as long as the store. INVALID_ARGUMENT, naming the names that
// there are, for an unknown adapter; naming the tensor and both shapes, for what does not fit;
// RESOURCE_EXHAUSTED when a copy does not fit in memory.
absl::Status MergeAdapter(const JsonNode& config, absl::string_view adapter, TensorStore& store);

// UNIMPLEMENTED where an adapter of PEFT lies in the folder: transformers would add it to the
// weights.
absl::Status CheckNoPeftAdapter(const std::string& directory);

// True if a tensor of this name becomes a merged weight.
bool TakesAdapters(absl::string_view tensor);

}  // namespace attendant
