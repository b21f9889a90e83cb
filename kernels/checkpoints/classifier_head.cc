// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/classifier_head.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "kernels/checkpoints/head_fields.h"
#include "kernels/checkpoints/read_tensor.h"
#include "kernels/checkpoints/sentence_module.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

// The fields of config.json that a head reads; those of other heads count for nothing.
enum class HeadFields : uint8_t {
  kNone,
  kPadding,      // of a decoder: `pad_token_id`, the head reads its last token that is no padding
  kPooler,       // `pooler_hidden_act`
  kPooling,      // `classifier_pooling` and `classifier_activation`
  kTemperature,  // `pooling` and `temperature`
};

// A row for each kind of head: the names of its tensors, without ".weight" and ".bias". Of several
// rows of an architecture, that one counts whose `dense` is stored.
struct HeadForm {
  absl::string_view architecture;
  absl::string_view dense;  // empty: there is none
  HeadActivation activation;
  absl::string_view norm;  // empty: there is none
  absl::string_view out;
  HeadFields fields = HeadFields::kNone;
  std::optional<int32_t> padding_id{};  // of kPadding: where the config lacks it
};

constexpr HeadForm kForms[] = {
    {"AlbertForSequenceClassification", "albert.pooler", HeadActivation::kTanh, "", "classifier"},
    {"BertForSequenceClassification", "bert.pooler.dense", HeadActivation::kTanh, "", "classifier"},
    {"RobertaForSequenceClassification", "classifier.dense", HeadActivation::kTanh, "",
     "classifier.out_proj"},
    {"CamembertForSequenceClassification", "classifier.dense", HeadActivation::kTanh, "",
     "classifier.out_proj"},
    {"XLMRobertaForSequenceClassification", "classifier.dense", HeadActivation::kTanh, "",
     "classifier.out_proj"},
    {"MPNetForSequenceClassification", "classifier.dense", HeadActivation::kTanh, "",
     "classifier.out_proj"},
    {"DebertaV2ForSequenceClassification", "pooler.dense", HeadActivation::kGeluErf, "",
     "classifier", HeadFields::kPooler},
    {"DistilBertForSequenceClassification", "pre_classifier", HeadActivation::kRelu, "",
     "classifier"},
    {"ElectraForSequenceClassification", "classifier.dense", HeadActivation::kGeluErf, "",
     "classifier.out_proj"},
    {"EsmForSequenceClassification", "classifier.dense", HeadActivation::kTanh, "",
     "classifier.out_proj"},
    {"ModernBertForSequenceClassification", "head.dense", HeadActivation::kGeluErf, "head.norm",
     "classifier", HeadFields::kPooling},
    {"NomicBertForSequenceClassification", "nomic_bert.pooler.dense", HeadActivation::kTanh, "",
     "classifier"},
    {"NomicBertForSequenceClassification", "bert.pooler.dense", HeadActivation::kTanh, "",
     "classifier"},  // of the code that came with Nomic's checkpoints
    {"GteForSequenceClassification", "gte.pooler.dense", HeadActivation::kTanh, "", "classifier"},
    {"NewForSequenceClassification", "new.pooler.dense", HeadActivation::kTanh, "", "classifier"},
    {"JinaEmbeddingsV3ForSequenceClassification", "classifier.dense", HeadActivation::kTanh, "",
     "classifier.out_proj"},
    {"Gemma3TextForSequenceClassification", "", HeadActivation::kNone, "", "score",
     HeadFields::kPadding, 0},
    {"LlamaForSequenceClassification", "", HeadActivation::kNone, "", "score",
     HeadFields::kPadding},
    {"LlamaBidirectionalForSequenceClassification", "", HeadActivation::kNone, "", "score",
     HeadFields::kTemperature},  // of the code that comes with NVIDIA's rerankers
    {"MistralForSequenceClassification", "", HeadActivation::kNone, "", "score",
     HeadFields::kPadding},
    {"Qwen2ForSequenceClassification", "", HeadActivation::kNone, "", "score",
     HeadFields::kPadding},
    {"Qwen3ForSequenceClassification", "", HeadActivation::kNone, "", "score",
     HeadFields::kPadding},
};

// Null: no head is read.
const HeadForm* FindForm(absl::string_view architecture, const TensorStore& store) {
  const HeadForm* found = nullptr;
  for (const HeadForm& form : kForms) {
    if (form.architecture != architecture) continue;
    if (store.Find(absl::StrCat(form.dense, ".weight")) != nullptr) return &form;
    if (found == nullptr) found = &form;
  }
  return found;
}

// As config.json of a cross-encoder names it.
absl::StatusOr<std::optional<ScoreActivation>> ReadCrossEncoderActivation(const JsonNode& config) {
  if (!config.Has("sentence_transformers")) return std::nullopt;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode fields, config.Field("sentence_transformers"));
  return ReadScoreActivation(fields, "activation_fn");
}

class Reader {
 public:
  Reader(const JsonNode& config, int64_t hidden, TensorStore& store)
      : config_(config), hidden_(hidden), store_(store) {}

  absl::StatusOr<SequenceClassifier> Read(const HeadForm& form) {
    SequenceClassifier head{.activation = form.activation};
    ATTENDANT_ASSIGN_OR_RETURN(head.dense, ReadLinear(form.dense, hidden_));
    if (!form.norm.empty()) ATTENDANT_RETURN_IF_ERROR(ReadNorm(form.norm, head));
    ATTENDANT_ASSIGN_OR_RETURN(const int64_t labels, CountLabels(config_, form.out, store_));
    ATTENDANT_ASSIGN_OR_RETURN(head.out, ReadLinear(form.out, labels));
    ATTENDANT_RETURN_IF_ERROR(ReadFields(form, head));
    ATTENDANT_ASSIGN_OR_RETURN(head.labels, ReadLabels(config_, labels));
    ATTENDANT_ASSIGN_OR_RETURN(head.scores, ReadActivation(labels));
    return head;
  }

 private:
  absl::Status ReadFields(const HeadForm& form, SequenceClassifier& head) const {
    switch (form.fields) {
      case HeadFields::kNone:
        return absl::OkStatus();
      case HeadFields::kPadding:
        return ReadPadding(form, head);
      case HeadFields::kPooler:
        return CheckText(config_, "pooler_hidden_act", "gelu");
      case HeadFields::kPooling:
        return ReadPooling(head);
      case HeadFields::kTemperature:
        return ReadTemperature(head);
    }
    return absl::OkStatus();
  }

  absl::Status ReadPadding(const HeadForm& form, SequenceClassifier& head) const {
    head.pooling = Pooling::kLast;
    if (config_.IsNull("pad_token_id")) return absl::OkStatus();  // the last token counts
    head.padding_id = form.padding_id;
    if (!config_.Has("pad_token_id")) return absl::OkStatus();
    int64_t id = 0;
    ATTENDANT_RETURN_IF_ERROR(config_.Require("pad_token_id", id));
    // An id that no token has leaves nothing out.
    head.padding_id =
        static_cast<int32_t>(std::clamp<int64_t>(id, -1, std::numeric_limits<int32_t>::max()));
    return absl::OkStatus();
  }

  // The logits are divided by the temperature.
  absl::Status ReadTemperature(SequenceClassifier& head) const {
    std::string pooling = "avg";
    ATTENDANT_RETURN_IF_ERROR(config_.Read("pooling", pooling));
    if (pooling != "avg" && pooling != "cls" && pooling != "last") {
      return Unsupported(config_, "pooling", Quoted(pooling), "avg, cls, last");
    }
    head.pooling = pooling == "avg"   ? Pooling::kMean
                   : pooling == "cls" ? Pooling::kCls
                                      : Pooling::kLast;
    double temperature = 1;
    ATTENDANT_RETURN_IF_ERROR(config_.Read("temperature", temperature));
    constexpr double kLeast = 1e-6, kMost = 1e6;
    if (!(temperature >= kLeast && temperature <= kMost)) {
      return absl::InvalidArgumentError(absl::StrCat(config_.where(), ": `temperature` is ",
                                                     temperature, ", it must be from ", kLeast,
                                                     " to ", kMost));
    }
    for (std::vector<float>* values : {&head.out.weight, &head.out.bias}) {
      for (float& value : *values) {
        const double scaled = value / temperature;
        if (!(std::abs(scaled) <= std::numeric_limits<float>::max())) {
          return absl::InvalidArgumentError(
              absl::StrCat(config_.where(), ": `temperature` is ", temperature,
                           ", a weight of the head divided by it does not fit in f32"));
        }
        value = static_cast<float>(scaled);
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadPooling(SequenceClassifier& head) const {
    std::string pooling = "cls";
    ATTENDANT_RETURN_IF_ERROR(config_.Read("classifier_pooling", pooling));
    if (pooling != "cls" && pooling != "mean") {
      return Unsupported(config_, "classifier_pooling", Quoted(pooling), "cls, mean");
    }
    head.pooling = pooling == "cls" ? Pooling::kCls : Pooling::kMean;
    return CheckText(config_, "classifier_activation", "gelu");
  }

  absl::StatusOr<std::vector<float>> Read(const std::string& name,
                                          const std::vector<int64_t>& dims) {
    ATTENDANT_ASSIGN_OR_RETURN(
        const float* values,
        ReadTensor(store_, name, dims, "the encoder and the config's labels make it"));
    const int64_t count =
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<int64_t>());
    return std::vector<float>(values, values + count);
  }

  absl::StatusOr<std::vector<float>> ReadIfThere(const std::string& name,
                                                 const std::vector<int64_t>& dims) {
    if (store_.Find(name) == nullptr) return std::vector<float>();
    return Read(name, dims);
  }

  absl::StatusOr<HeadLinear> ReadLinear(absl::string_view name, int64_t outputs) {
    if (name.empty()) return HeadLinear{};
    HeadLinear linear{.outputs = outputs, .inputs = hidden_};
    ATTENDANT_ASSIGN_OR_RETURN(linear.weight,
                               Read(absl::StrCat(name, ".weight"), {outputs, hidden_}));
    ATTENDANT_ASSIGN_OR_RETURN(linear.bias, ReadIfThere(absl::StrCat(name, ".bias"), {outputs}));
    return linear;
  }

  absl::Status ReadNorm(absl::string_view name, SequenceClassifier& head) {
    ATTENDANT_RETURN_IF_ERROR(ReadLayerNormEpsilon(config_, "norm_eps", 1e-5, head.norm.epsilon));
    ATTENDANT_ASSIGN_OR_RETURN(head.norm.gamma, Read(absl::StrCat(name, ".weight"), {hidden_}));
    ATTENDANT_ASSIGN_OR_RETURN(head.norm.beta, ReadIfThere(absl::StrCat(name, ".bias"), {hidden_}));
    return absl::OkStatus();
  }

  absl::StatusOr<ScoreActivation> ReadActivation(int64_t labels) const {
    ATTENDANT_ASSIGN_OR_RETURN(std::optional<ScoreActivation> named,
                               ReadCrossEncoderActivation(config_));
    if (!named.has_value()) {
      ATTENDANT_ASSIGN_OR_RETURN(
          named, ReadScoreActivation(config_, "sbert_ce_default_activation_function"));
    }
    if (named.has_value()) return *named;
    std::string problem;
    ATTENDANT_RETURN_IF_ERROR(config_.Read("problem_type", problem));
    if (problem == "regression") return ScoreActivation::kNone;
    const bool single = labels == 1 || problem == "multi_label_classification";
    return single ? ScoreActivation::kSigmoid : ScoreActivation::kSoftmax;
  }

  const JsonNode& config_;
  const int64_t hidden_;
  TensorStore& store_;
};

// Of language models without a bias, whose logits nothing changes.
constexpr absl::string_view kLanguageModels[] = {"LlamaForCausalLM", "MistralForCausalLM",
                                                 "Qwen2ForCausalLM", "Qwen3ForCausalLM"};

absl::Status CheckLanguageModel(const JsonNode& config) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string architecture, FirstArchitecture(config));
  const auto* const end = std::end(kLanguageModels);
  if (std::find(std::begin(kLanguageModels), end, architecture) != end) return absl::OkStatus();
  return Unsupported(config, "architectures", Quoted(architecture),
                     absl::StrCat(absl::StrJoin(kLanguageModels, ", "), " for a LogitScore"));
}

// The head's weights, [vocab, hidden]; null where they are those of the token embedding.
absl::StatusOr<const StoredTensor*> FindWords(const JsonNode& config, const EncoderWeights& weights,
                                              const TensorStore& store) {
  constexpr char kName[] = "lm_head.weight";
  const StoredTensor* const words = store.Find(kName);
  if (words == nullptr) {
    bool tied = true;
    ATTENDANT_RETURN_IF_ERROR(config.Read("tie_word_embeddings", tied));
    if (tied) return nullptr;
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", Quoted(kName), " is missing, and `tie_word_embeddings` is false"));
  }
  const int64_t vocab = weights.token_embedding.dim(0), hidden = weights.token_embedding.dim(1);
  if (words->dims == std::vector<int64_t>{vocab, hidden}) return words;
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", Quoted(kName), " has shape [", absl::StrJoin(words->dims, ", "),
                   "], the token embedding [", vocab, ", ", hidden, "]"));
}

class WordReader {
 public:
  WordReader(const JsonNode& module, const StoredTensor* words, const EncoderWeights& weights)
      : module_(module), words_(words), embedding_(weights.token_embedding) {}

  // The row of the token in `field`.
  absl::StatusOr<std::vector<float>> Read(const char* field) const {
    int64_t id = 0;
    ATTENDANT_RETURN_IF_ERROR(module_.Require(field, id));
    if (id < 0 || id >= embedding_.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(module_.where(), ": `", field, "` is ", id,
                                                     ", it must be from 0 to ",
                                                     embedding_.dim(0) - 1));
    }
    if (words_ != nullptr) return TensorStore::Row(*words_, id);
    const float* const row = embedding_.row(id);
    return std::vector<float>(row, row + embedding_.dim(1));
  }

 private:
  const JsonNode& module_;
  const StoredTensor* const words_;
  const TensorView<const float, 2>& embedding_;
};

absl::StatusOr<SequenceClassifier> ReadWordHead(const JsonNode& config, const JsonNode& module,
                                                const EncoderWeights& weights,
                                                const TensorStore& store) {
  ATTENDANT_RETURN_IF_ERROR(CheckLanguageModel(config));
  ATTENDANT_RETURN_IF_ERROR(CheckText(module, "module_input_name", "causal_logits"));
  ATTENDANT_ASSIGN_OR_RETURN(const StoredTensor* const words, FindWords(config, weights, store));
  const WordReader reader(module, words, weights);
  SequenceClassifier head{.pooling = Pooling::kLast};
  head.out.outputs = 1;
  head.out.inputs = weights.token_embedding.dim(1);
  head.labels.emplace_back("LABEL_0");
  ATTENDANT_ASSIGN_OR_RETURN(head.out.weight, reader.Read("true_token_id"));
  if (module.Has("false_token_id")) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<float> against, reader.Read("false_token_id"));
    for (size_t i = 0; i < against.size(); ++i) head.out.weight[i] -= against[i];
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<ScoreActivation> named,
                             ReadCrossEncoderActivation(config));
  head.scores = named.value_or(ScoreActivation::kSigmoid);
  return head;
}

}  // namespace

absl::StatusOr<std::optional<ScoreActivation>> ReadScoreActivation(const JsonNode& config,
                                                                   const char* field) {
  std::string name;
  ATTENDANT_RETURN_IF_ERROR(config.Read(field, name));
  if (name.empty()) return std::nullopt;
  if (absl::EndsWith(name, ".Identity")) return ScoreActivation::kNone;
  if (absl::EndsWith(name, ".Sigmoid")) return ScoreActivation::kSigmoid;
  if (absl::EndsWith(name, ".Softmax")) return ScoreActivation::kSoftmax;
  return Unsupported(config, field, Quoted(name), "Identity, Sigmoid or Softmax");
}

absl::StatusOr<std::optional<SequenceClassifier>> ReadSequenceClassifier(
    const JsonNode& config, int64_t hidden, const std::string& directory, TensorStore& store) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string architecture, FirstArchitecture(config));
  const HeadForm* const form = FindForm(architecture, store);
  if (form == nullptr) return std::nullopt;
  absl::StatusOr<SequenceClassifier> head = Reader(config, hidden, store).Read(*form);
  if (head.ok()) return std::optional(*std::move(head));
  return absl::Status(head.status().code(), absl::StrCat(directory, ": ", head.status().message()));
}

absl::StatusOr<std::optional<SequenceClassifier>> ReadWordClassifier(const JsonNode& config,
                                                                     const JsonFolder& folder,
                                                                     const EncoderWeights& weights,
                                                                     const TensorStore& store) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> module, ReadLogitScore(folder));
  if (!module.has_value()) return std::nullopt;
  absl::StatusOr<SequenceClassifier> head = ReadWordHead(config, *module, weights, store);
  if (head.ok()) return std::optional(*std::move(head));
  return absl::Status(head.status().code(),
                      absl::StrCat(folder.path(), ": ", head.status().message()));
}

}  // namespace attendant
