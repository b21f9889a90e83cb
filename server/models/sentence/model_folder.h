// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/io/json_folder.h"

namespace attendant {

// The folder with the weights of query tokens, of an inference-free sparse model.
struct QueryFolder {
  JsonFolder folder;
  std::string file{};       // "idf.json", "query_token_weights.txt"; empty: a module of its own
  bool is_default = false;  // of texts without a prompt
};

// The folders of a model as sentence-transformers saves it. All share what has been read of them:
// who loads a model passes one ModelFolder through, and each of its JSON files is read once.
struct ModelFolder {
  JsonFolder root;     // modules.json, config_sentence_transformers.json, the other modules
  JsonFolder encoder;  // config.json, weights, tokenizer, sentence_bert_config.json
  std::optional<JsonFolder> splade{};  // SpladePooling behind a Router; unset: as modules.json says
  std::optional<QueryFolder> query{};
};

// Finds them for a model in `directory`: the first module of modules.json has the encoder's folder,
// or is a Router whose router_config.json sends documents through Transformer and SpladePooling,
// and queries through SparseStaticEmbedding. Without modules.json all is in `directory`, the
// weights of queries in idf.json or query_token_weights.txt, if one of them is there.
// INVALID_ARGUMENT, naming file and field, for a file that is not valid and for a path that leaves
// the folder; UNIMPLEMENTED for other routes and other modules in them.
absl::StatusOr<ModelFolder> FindModelFolder(const std::string& directory);

}  // namespace attendant
