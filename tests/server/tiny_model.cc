// SPDX-License-Identifier: Apache-2.0
#include "tests/server/tiny_model.h"

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/bert_tokenizer.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

constexpr char kModules[] = R"([
  {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
])";

}  // namespace

std::string TinyTokenizer(int64_t text_type_id) {
  nlohmann::json file =
      BertTokenizerJson({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "hello", "world", "##lo"});
  file["post_processor"]["single"][1]["Sequence"]["type_id"] = text_type_id;
  return file.dump();
}

void WriteTinyModel(const std::string& directory) {
  std::filesystem::create_directories(directory + "/1_Pooling");
  WriteCheckpoint(directory, kTinyConfig, 1);
  WriteFile(directory + "/tokenizer.json", TinyTokenizer(0));
  WriteFile(directory + "/modules.json", kModules);
  WriteFile(directory + "/1_Pooling/config.json",
            R"({"word_embedding_dimension": 16, "pooling_mode_mean_tokens": true})");
  WriteFile(directory + "/sentence_bert_config.json", R"({"max_seq_length": 32})");
}

void WriteTinyClassifier(const std::string& directory, const std::vector<std::string>& labels) {
  const auto count = static_cast<int64_t>(labels.size());
  constexpr int64_t kHidden = kTinyConfig.hidden;
  const auto random = [](const std::string& name, const std::vector<int64_t>& dims) {
    std::mt19937 source(7);
    std::vector<float> values(static_cast<size_t>(dims[0] * (dims.size() > 1 ? dims[1] : 1)));
    for (float& value : values) value = static_cast<float>(source() % 1000) / 1000 - 0.5f;
    return FloatTensor(name, dims, values);
  };
  std::vector<TestTensor> tensors = RandomTensors(kTinyConfig, 1);
  tensors.push_back(random("bert.pooler.dense.weight", {kHidden, kHidden}));
  tensors.push_back(random("bert.pooler.dense.bias", {kHidden}));
  tensors.push_back(random("classifier.weight", {count, kHidden}));
  tensors.push_back(random("classifier.bias", {count}));
  std::string config = ConfigJson(kTinyConfig);
  config.pop_back();
  absl::StrAppend(&config,
                  R"(, "architectures": ["BertForSequenceClassification"], "id2label": {)");
  for (size_t i = 0; i < labels.size(); ++i) {
    absl::StrAppend(&config, i == 0 ? "" : ", ", "\"", i, "\": \"", labels[i], "\"");
  }
  std::filesystem::create_directories(directory);
  WriteFile(directory + "/config.json", config + "}}");
  WriteFile(directory + "/model.safetensors", SafetensorsBytes(tensors));
  WriteFile(directory + "/tokenizer.json", TinyTokenizer(0));
}

void WriteTinyModule(const std::string& directory) {
  const auto zeros = [](const std::string& name, const std::vector<int64_t>& dims, size_t count) {
    return FloatTensor(name, dims, std::vector<float>(count));
  };
  std::filesystem::create_directories(directory);
  WriteFile(directory + "/config.json", R"({"type": "MultiheadAttention", "num_heads": 2})");
  WriteFile(
      directory + "/model.safetensors",
      SafetensorsBytes({zeros("in_proj_bias", {12}, 12), zeros("in_proj_weight", {12, 4}, 48),
                        zeros("out_proj.bias", {4}, 4), zeros("out_proj.weight", {4, 4}, 16)}));
}

}  // namespace attendant
