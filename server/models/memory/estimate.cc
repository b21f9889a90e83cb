// SPDX-License-Identifier: Apache-2.0
#include "server/models/memory/estimate.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/adapters.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/checkpoints/token_heads.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/status_macros.h"
#include "kernels/heads/token_head.h"
#include "kernels/io/json_file.h"
#include "kernels/io/json_folder.h"
#include "kernels/io/tensor_store.h"
#include "server/models/sentence/model_folder.h"
#include "server/models/sentence/splade_modules.h"
#include "server/text/tokenizer.h"
#include "server/text/tokenizer_config.h"

namespace attendant {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

// Of packed weights, in thousandths: int8 has scales, sums of columns and outliers beside them, and
// without VNNI room for values that move, most of it with AVX-512.
int64_t PackedBytes(int64_t values, DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return values * 1300 / 1000;
    case DType::kBf16:
      return values * 2;
    default:
      return values * kFloatBytes;
  }
}

struct StoredBytes {
  int64_t values = 0;
  int64_t converted_bytes = 0;  // f32 copies: of what is not stored as f32, and of merged weights
};

StoredBytes Sum(const TensorStore& store, bool merges_adapter) {
  StoredBytes sum;
  for (const auto& [name, tensor] : store.tensors()) {
    int64_t values = 1;
    for (const int64_t dim : tensor->dims) values *= dim;
    sum.values += values;
    const bool merged = merges_adapter && TakesAdapters(name);
    if (tensor->dtype != "F32" || merged) sum.converted_bytes += values * kFloatBytes;
  }
  return sum;
}

// The values that a mixture of experts keeps from phase to phase, for the rows of a section.
int64_t ExpertBytes(const EncoderConfig& config, const SessionLimits& limits, int threads) {
  constexpr int64_t kSectionTokens = 256;
  if (config.expert_layers.none()) return 0;
  const int64_t rows =
      std::min(limits.max_batch_tokens, kSectionTokens * threads * 3 / 2 + config.max_positions);
  const int64_t inputs = config.norm_place == NormPlace::kPost ? 0 : config.hidden;
  return rows * (inputs + config.experts_per_token * (config.hidden + 4)) * kFloatBytes;
}

// As CpuSession and LayerRunner allocate: states, context and qkv of a batch, and for each thread
// the rows that it takes through a layer.
int64_t SessionBytes(const EncoderConfig& config, const SessionLimits& limits, int threads) {
  constexpr int64_t kBlockRows = 128;
  constexpr int64_t kGapQueries = 32, kTaskQueries = 256;
  constexpr int64_t kThreadBytes = 256 << 10;  // of oneDNN and the thread itself
  const int64_t max_len = std::min(limits.max_batch_tokens, config.max_positions);
  const int64_t row = config.hidden + config.context_width() + config.qkv_width();
  const int64_t batch = limits.max_batch_tokens * row * kFloatBytes +
                        limits.max_batch_sequences * config.hidden * kFloatBytes;
  const int64_t columns = 2 * config.hidden + config.ffn +
                          std::max({config.ffn_inputs(), config.qkv_width(), config.input_width()});
  const int64_t attention = max_len * (2 * config.head_dim() + 64) * kFloatBytes;
  const bool disentangled = config.score_bias == ScoreBias::kDisentangled;
  int64_t bias = config.is_relative() ? max_len * kGapQueries * kFloatBytes : 0;
  if (disentangled) {
    bias = (max_len * kTaskQueries + (max_len + kTaskQueries) * config.bias_buckets) * kFloatBytes;
  }
  return batch + ExpertBytes(config, limits, threads) +
         threads * (kBlockRows * columns * kFloatBytes + 2 * attention + bias + kThreadBytes);
}

// The tables that the CPU back end makes from positions: rotary tables and biases by distance. And
// the projection of embeddings, which it keeps in f32 whatever the format.
int64_t TableBytes(const EncoderConfig& config) {
  int64_t values = config.projects_embeddings() ? config.embedding_width * config.hidden : 0;
  if (config.positions == Positions::kRotary) {
    values += (config.local_layers.any() ? 2 : 1) * config.max_positions * config.head_dim();
  }
  if (config.score_bias == ScoreBias::kDisentangled) {
    values += config.layers * 2 * config.bias_buckets * config.context_width();
  } else if (config.score_bias != ScoreBias::kNone) {
    values += config.heads * 2 * config.max_positions;
  }
  return values * kFloatBytes;
}

// Adds the memory of a masked language model's head beside its tensors. Errors are the load's.
void AddVocabularyHead(const ModelFolder& folder, const EncoderConfig& config,
                       const TensorStore& store, const EstimateOptions& options,
                       MemoryEstimate& estimate) {
  constexpr int64_t kReducedBytes = 16 << 20;  // as masked_lm_head.cc has them
  constexpr int64_t kThreadBytes = 1 << 20;
  constexpr int64_t kEntryBytes = 8;
  const absl::StatusOr<JsonNode> json = folder.encoder.Read("config.json");
  const absl::StatusOr<std::optional<SpladeOptions>> splade = FindSplade(folder);
  if (!json.ok() || !splade.ok() || !splade->has_value()) return;
  const int64_t values = CountTiedValues(*json, config, store);
  if (values == 0) return;
  estimate.weight_bytes += values * (options.dtype == DType::kBf16 ? 2 : kFloatBytes);
  for (const ThreadTeam& team : options.replicas) {
    estimate.session_bytes += kReducedBytes +
                              team.threads * (kThreadBytes + config.vocab * kEntryBytes) +
                              options.limits.max_batch_tokens * config.hidden * kFloatBytes;
  }
}

// The libraries' own memory after the first load: compiled kernels, above all.
constexpr int64_t kLibraryBytes = 24 << 20;

int64_t FileBytes(const std::string& path) {
  std::error_code absent;
  const auto bytes = std::filesystem::file_size(path, absent);
  return absent ? 0 : static_cast<int64_t>(bytes);
}

// The memory of the tables of a folder's tokenizer, by the size of its file. Errors are left to the
// load.
int64_t TokenizerBytes(const JsonFolder& folder) {
  constexpr int64_t kBytesPerByte = 12;
  constexpr int64_t kConvertedBytes = 3;  // of tokenizer.json for each of a sentencepiece model
  constexpr int64_t kEsmBytes = 250;      // its tokens are a few letters, each found in texts
  if (const int64_t vocabulary = FileBytes(folder.path() + "/vocab.txt"); vocabulary > 0) {
    const absl::StatusOr<TokenizerSettings> settings = ReadTokenizerSettings(folder);
    if (settings.ok() && settings->esm.has_value()) return kEsmBytes * vocabulary;
  }
  int64_t bytes = FileBytes(folder.path() + "/tokenizer.json");
  for (size_t i = 0; bytes == 0 && i < std::size(kSentencePieceFiles); ++i) {
    const std::string path = absl::StrCat(folder.path(), "/", kSentencePieceFiles[i]);
    bytes = kConvertedBytes * FileBytes(path);
  }
  return kBytesPerByte * bytes;
}

// Of all tokenizers: queries may have one of their own.
int64_t TokenizersBytes(const ModelFolder& folder) {
  const bool of_queries = folder.query.has_value() && folder.query->file.empty();
  return TokenizerBytes(folder.encoder) + (of_queries ? TokenizerBytes(folder.query->folder) : 0);
}

// Modules of sentence-transformers, each in a folder of its own, keep their weights as f32. Those
// of a folder that cannot be listed are left to the load.
int64_t ModuleBytes(const ModelFolder& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder.root.path(), error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code absent;
    if (std::filesystem::equivalent(entry->path(), folder.encoder.path(), absent)) continue;
    bytes += FileBytes((entry->path() / "model.safetensors").string());
  }
  return bytes;
}

}  // namespace

absl::StatusOr<MemoryEstimate> EstimateMemory(const ModelFolder& folder,
                                              const EstimateOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<TensorStore> store,
                             TensorStore::Open(folder.encoder.path()));
  const StoredBytes stored = Sum(*store, options.merges_adapter);
  MemoryEstimate estimate{
      .weight_bytes = PackedBytes(stored.values, options.dtype) + ModuleBytes(folder),
      .load_bytes = stored.converted_bytes + TokenizersBytes(folder) + kLibraryBytes};
  const absl::StatusOr<EncoderConfig> config = ReadEncoderConfig(folder.encoder);
  if (!config.ok()) return estimate;  // an attention module, or loading says what is wrong
  for (const ThreadTeam& team : options.replicas) {
    estimate.session_bytes += SessionBytes(*config, options.limits, team.threads);
  }
  estimate.weight_bytes += TableBytes(*config);
  estimate.load_bytes += CountReorderedBytes(folder.encoder).value_or(0);
  AddVocabularyHead(folder, *config, *store, options, estimate);
  return estimate;
}

}  // namespace attendant
