// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/sparse_lookup.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"
#include "server/text/tokenizer_json.h"

namespace attendant {
namespace {

constexpr char kQueryName[] = "query", kDocumentName[] = "document";
constexpr int64_t kMaxWeightFileBytes = int64_t{16} << 20;

// The weights of tokens, by their strings.
class WeightTable {
 public:
  WeightTable(const Tokenizer& tokenizer, std::vector<float>& weights) : weights_(weights) {
    weights.assign(static_cast<size_t>(tokenizer.vocab()), 0.0f);
    for (int32_t id = 0; id < tokenizer.vocab(); ++id) {
      const absl::string_view token = tokenizer.TokenString(id);
      if (!token.empty()) ids_.emplace(token, static_cast<size_t>(id));
    }
  }

  // False for a weight that is no finite f32.
  bool Set(absl::string_view token, double weight) {
    constexpr double kMaxWeight = std::numeric_limits<float>::max();
    if (!(std::abs(weight) <= kMaxWeight)) return false;
    const auto found = ids_.find(token);
    if (found != ids_.end()) weights_[found->second] = static_cast<float>(weight);
    return true;
  }

 private:
  std::vector<float>& weights_;
  absl::flat_hash_map<absl::string_view, size_t> ids_;
};

// {"token": 1.5}
absl::Status ReadJsonWeights(const std::string& path, WeightTable& table) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode file, ReadJsonFile(path));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> tokens, file.FieldNames());
  for (const std::string& token : tokens) {
    double weight = 0;
    ATTENDANT_RETURN_IF_ERROR(file.Read(token, weight));
    if (table.Set(token, weight)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the weight of ", Quoted(token), " is no finite f32"));
  }
  return absl::OkStatus();
}

// A line for each token: the token, a tab, its weight.
absl::Status ReadTextWeights(const std::string& path, WeightTable& table) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxWeightFileBytes));
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const size_t tab = line.rfind('\t');
    double weight = 0;
    if (tab == absl::string_view::npos || !absl::SimpleAtod(line.substr(tab + 1), &weight) ||
        !table.Set(line.substr(0, tab), weight)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": line ", number, " is not a token, a tab and a finite weight"));
    }
  }
  return absl::OkStatus();
}

// The tensor `weight` of the module in `directory`.
absl::Status ReadTensorWeights(const std::string& directory, int64_t vocab,
                               std::vector<float>& weights) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<TensorStore> store,
                             TensorStore::Open(directory));
  const StoredTensor* const tensor = store->Find("weight");
  if (tensor == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(directory, ": tensor `weight` is missing"));
  }
  if (tensor->dims.size() != 1 || tensor->dims[0] < 1 || tensor->dims[0] > vocab) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, ": tensor `weight` has ", tensor->dims.size(), " dimensions, the ",
                     "first of ", tensor->dims.empty() ? 0 : tensor->dims[0],
                     "; it must have one, of at most the ", vocab, " ids of the encoder"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const float* const values, store->Floats(*tensor));
  weights.assign(values, values + tensor->dims[0]);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReadQueryTokens(const JsonFolder& folder) {
  double tokens = std::numeric_limits<int32_t>::max();
  const double most = tokens;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.ReadOrEmpty("tokenizer_config.json"));
  ATTENDANT_RETURN_IF_ERROR(ReadAtLeast(config, "model_max_length", 1, tokens));
  return static_cast<int64_t>(std::min(tokens, most));
}

// Null: it is the encoder's.
absl::StatusOr<std::unique_ptr<Tokenizer>> ReadOwnTokenizer(const JsonFolder& folder,
                                                            const std::string& encoder_directory) {
  const std::string name = "/tokenizer.json";
  const absl::StatusOr<std::string> own =
      ReadTextFile(folder.path() + name, kMaxTokenizerFileBytes);
  if (own.ok()) {
    const absl::StatusOr<std::string> encoders =
        ReadTextFile(encoder_directory + name, kMaxTokenizerFileBytes);
    if (encoders.ok() && *own == *encoders) return nullptr;
  }
  return LoadTokenizer(folder);
}

absl::Status ReadLookupModule(const JsonFolder& folder, const std::string& encoder_directory,
                              int64_t vocab, SparseLookup& lookup) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.Read("config.json"));
  if (config.Has("path")) return Unsupported(config, "path", "there", "model.safetensors alone");
  ATTENDANT_RETURN_IF_ERROR(ReadTensorWeights(folder.path(), vocab, lookup.weights));
  ATTENDANT_ASSIGN_OR_RETURN(lookup.tokenizer, ReadOwnTokenizer(folder, encoder_directory));
  return absl::OkStatus();
}

absl::Status ReadLookupFile(const QueryFolder& query, const Tokenizer& tokenizer,
                            SparseLookup& lookup) {
  WeightTable table(tokenizer, lookup.weights);
  const std::string path = absl::StrCat(query.folder.path(), "/", query.file);
  return query.file == "idf.json" ? ReadJsonWeights(path, table) : ReadTextWeights(path, table);
}

}  // namespace

HeadResult SparseLookup::Weigh(std::span<const int32_t> token_ids, int64_t top_k) const {
  const auto weight = [this](int32_t id) { return weights[static_cast<size_t>(id)]; };
  HeadResult result;
  std::vector<int32_t>& ids = result.indices;
  for (const int32_t id : token_ids) {
    if (weight(id) != 0) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (top_k > 0 && static_cast<int64_t>(ids.size()) > top_k) {
    std::stable_sort(ids.begin(), ids.end(), [&weight](int32_t a, int32_t b) {
      return std::abs(weight(a)) > std::abs(weight(b));
    });
    ids.resize(static_cast<size_t>(top_k));
    std::sort(ids.begin(), ids.end());
  }
  for (const int32_t id : ids) result.values.push_back(weight(id));
  return result;
}

absl::StatusOr<SparseLookup> ReadSparseLookup(const QueryFolder& query,
                                              const std::string& encoder_directory,
                                              const Tokenizer& tokenizer, int64_t vocab) {
  SparseLookup lookup;
  if (query.file.empty()) {
    ATTENDANT_RETURN_IF_ERROR(ReadLookupModule(query.folder, encoder_directory, vocab, lookup));
  } else {
    ATTENDANT_RETURN_IF_ERROR(ReadLookupFile(query, tokenizer, lookup));
  }
  ATTENDANT_ASSIGN_OR_RETURN(lookup.max_tokens, ReadQueryTokens(query.folder));
  const Tokenizer& own = lookup.tokenizer == nullptr ? tokenizer : *lookup.tokenizer;
  if (own.vocab() <= static_cast<int64_t>(lookup.weights.size())) return lookup;
  return absl::InvalidArgumentError(absl::StrCat(query.folder.path(), ": there are ",
                                                 lookup.weights.size(), " weights for the ",
                                                 own.vocab(), " ids of the tokenizer"));
}

void AddLookup(const QueryFolder& query, Prompts& prompts) {
  prompts.by_name.try_emplace(kQueryName);
  prompts.by_name.try_emplace(kDocumentName);
  for (auto& [name, prompt] : prompts.by_name) {
    prompt.looks_up = name == kQueryName || (query.is_default && name != kDocumentName);
  }
  if (prompts.default_name.empty()) {
    prompts.default_name = query.is_default ? kQueryName : kDocumentName;
  }
}

}  // namespace attendant
