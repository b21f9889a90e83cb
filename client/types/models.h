// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attendant::client {

// A version of a model, as the server describes it.
struct ModelInfo {
  std::string name;
  int64_t version = 0;
  std::string state;  // "loading", "ready", "failed", "draining", "unloaded" or "idle"
  std::string error;  // failed: the reason
  // The fields below are set once the model has loaded, also while it is idle or unloaded.
  std::string backend;  // "cpu", "cuda" or "reference"
  std::string isa;      // instruction set or GPU: "amx"
  std::string dtype;    // number format of the computation: "f32", "bf16", "int8", "f16" or "fp8"
  // "mean", "cls", "max", "last", "mean_sqrt_len" or "weighted_mean"; of several, which are
  // concatenated, "cls+mean"
  std::string pooling;
  int64_t layers = 0, heads = 0, hidden = 0, vocab = 0;
  int64_t embedding_dims = 0;       // values of an embedding
  int64_t max_sequence_tokens = 0;  // longest sequence of ids
  int64_t max_text_tokens = 0;      // length at which texts are cut
  bool normalize = false;           // pooled embeddings have length 1 by default
  std::vector<std::string> labels;  // of a classifier's scores; a reranker has one, ColBERT none
  std::vector<std::string> prompt_names;
  std::string default_prompt_name;        // empty: none
  std::vector<std::string> tasks;         // "scores", "sparse", "fill_mask", ..
  std::vector<std::string> token_labels;  // of the scores of tokens
};

// The health of the server or of a model; kUnknown: any other status of gRPC's health checking.
enum class ServingStatus { kUnknown, kServing, kNotServing };

}  // namespace attendant::client
