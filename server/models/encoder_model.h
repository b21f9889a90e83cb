// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/core/backend.h"
#include "kernels/heads/sequence_classifier.h"
#include "server/metrics/model_metrics.h"
#include "server/metrics/server_metrics.h"
#include "server/models/model_heads.h"
#include "server/models/model_options.h"
#include "server/models/sentence/model_folder.h"
#include "server/models/sentence/prompts.h"
#include "server/models/sentence/sparse_lookup.h"
#include "server/models/sentence_settings.h"
#include "server/models/servable_model.h"
#include "server/text/tokenizer.h"
#include "server/threads/executor.h"

namespace attendant {

// The facts that stay known when an encoder is unloaded.
struct EncoderFacts {
  int64_t hidden = 0;
  int64_t embedding_dims = 0;
  int64_t max_sequence_tokens = 0;
  bool takes_text = false;
  int64_t labels = 0;  // of its classifier; 0: it has none
  // By TaskKind: the columns of a row of the head's result, 0 for kSparse; unset: no such head.
  std::array<std::optional<int64_t>, kNumTaskKinds> task_columns{};
  bool splade = false;  // as ModelHeads::splade
};

// More about an encoder that clients may ask for, while it is unloaded too.
struct EncoderInfo {
  std::string backend, isa;  // as in PreparedInfo
  DType dtype = DType::kF32;
  int64_t layers = 0, heads = 0, vocab = 0;
  std::vector<Pooling> poolings;
  bool normalize = false;
  std::optional<std::vector<std::string>> labels;  // of its classifier
  std::vector<std::string> token_labels;           // as ModelHeads::token_labels
  std::vector<std::string> prompt_names;           // in alphabetical order
  std::string default_prompt_name;                 // empty: none
  int64_t max_text_tokens = 0;
  int64_t max_batch_tokens = 0;
  int64_t max_batch_sequences = 0;
  int64_t max_queued_requests = 0;
};

// An encoder.
struct EncoderModel final : ServableModel {
  ~EncoderModel() override { batcher.reset(); }  // before the encoder that its sessions use

  EncoderModel* AsEncoder() override { return this; }
  ModelLoadInfo LoadInfo() const override;

  SentenceSettings sentence;
  Prompts prompts;
  std::string adapter;              // that is merged into the weights; empty: none
  int64_t max_sequence_tokens = 0;  // the longest sequence of ids: position table and batch budget
  int64_t arena_bytes = 0;          // of all its sessions
  std::optional<SequenceClassifier> classifier;  // of a checkpoint that has one
  ModelHeads heads;                              // on tokens
  std::optional<SparseLookup> lookup;            // of an inference-free sparse model
  std::unique_ptr<Tokenizer> tokenizer;          // null when the checkpoint has none: ids only
  std::shared_ptr<PreparedEncoder> encoder;      // shared with scrapes of its devices

  const EncoderConfig& config() const { return encoder->config(); }
  int64_t embedding_dims() const { return sentence.embedding_dims(config().hidden); }
  EncoderFacts Facts() const {
    return {.hidden = config().hidden,
            .embedding_dims = embedding_dims(),
            .max_sequence_tokens = max_sequence_tokens,
            .takes_text = tokenizer != nullptr,
            .labels = classifier.has_value() ? classifier->num_labels() : 0,
            .task_columns = heads.Columns(),
            .splade = heads.splade};
  }
  EncoderInfo Info() const;
};

// An encoder on `backend` from the checkpoint in `folder`, which is `source`'s, whose sessions have
// answered warm-up batches. Errors name the file or the option at fault.
absl::StatusOr<std::unique_ptr<EncoderModel>> MakeEncoderModel(
    const ModelSource& source, const ModelFolder& folder, Checkpoint checkpoint,
    const Backend& backend, const ModelOptions& options, ServerMetrics& metrics,
    const Executor& executor);

}  // namespace attendant
