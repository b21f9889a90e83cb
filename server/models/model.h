// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/core/backend.h"
#include "server/batching/batcher.h"
#include "server/text/tokenizer.h"

namespace attendant {

// How a sentence-transformers checkpoint makes one vector of a text (modules.json, 1_Pooling/config.json,
// sentence_bert_config.json). Defaults hold where those files do not exist.
struct SentenceSettings {
  Pooling pooling = Pooling::kMean;
  bool normalize = false;
  int64_t max_text_tokens = 0;  // texts are cut here; never above max_sequence_tokens
};

// A model that has loaded and answers. Immutable but for its batcher; thread-safe.
struct Model {
  std::string name;
  SentenceSettings sentence;
  std::unique_ptr<Tokenizer> tokenizer;      // null when the checkpoint has no tokenizer.json: ids only
  std::unique_ptr<PreparedEncoder> encoder;
  std::unique_ptr<BatchObserver> observer;
  std::unique_ptr<Batcher> batcher;          // last: it stops before what it uses goes

  const EncoderConfig& config() const { return encoder->config(); }
  int64_t max_sequence_tokens = 0;  // the longest sequence of ids: position table and batch budget
};

}  // namespace attendant
