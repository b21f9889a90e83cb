// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/token_heads.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/checkpoints/head_fields.h"
#include "kernels/checkpoints/read_tensor.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

// Where the epsilon of a head's norm stands, and its value where config.json does not say. Without
// both it is the encoder's.
struct Epsilon {
  const char* field;
  double otherwise;
};

// A row for each kind of head: the names of its tensors, without ".weight" and ".bias".
struct TokenHeadForm {
  absl::string_view architecture;
  TokenHeadKind kind;
  absl::string_view out;
  absl::string_view out_bias{};     // another name of its bias, the whole of it
  absl::string_view dense{};        // empty: there is none
  bool encoder_activation = false;  // of dense: the encoder's, else GELU
  absl::string_view norm{};
  Epsilon epsilon{};
  bool optional_biases = false;
};

constexpr TokenHeadKind kMaskedLm = TokenHeadKind::kMaskedLm;
constexpr TokenHeadKind kTokenLabels = TokenHeadKind::kTokenLabels;
constexpr Epsilon kLayerNormEps{"layer_norm_eps", 1e-12};

constexpr TokenHeadForm BertMaskedLm(absl::string_view architecture) {
  return {.architecture = architecture,
          .kind = kMaskedLm,
          .out = "cls.predictions.decoder",
          .out_bias = "cls.predictions.bias",
          .dense = "cls.predictions.transform.dense",
          .encoder_activation = true,
          .norm = "cls.predictions.transform.LayerNorm",
          .epsilon = kLayerNormEps};
}

constexpr TokenHeadForm RobertaMaskedLm(absl::string_view architecture) {
  return {.architecture = architecture,
          .kind = kMaskedLm,
          .out = "lm_head.decoder",
          .out_bias = "lm_head.bias",
          .dense = "lm_head.dense",
          .norm = "lm_head.layer_norm",
          .epsilon = kLayerNormEps};
}

constexpr TokenHeadForm ModernBert(absl::string_view architecture, TokenHeadKind kind,
                                   absl::string_view out) {
  return {.architecture = architecture,
          .kind = kind,
          .out = out,
          .dense = "head.dense",
          .norm = "head.norm",
          .epsilon = {"norm_eps", 1e-5},
          .optional_biases = true};
}

constexpr TokenHeadForm NomicMaskedLm(absl::string_view architecture) {
  TokenHeadForm form = BertMaskedLm(architecture);
  form.norm = "cls.predictions.transform.layer_norm";
  form.epsilon = {};
  form.optional_biases = true;
  return form;
}

constexpr TokenHeadForm GteMaskedLm(absl::string_view architecture, bool encoder_activation) {
  return {.architecture = architecture,
          .kind = kMaskedLm,
          .out = "lm_head.decoder",
          .dense = "lm_head.dense",
          .encoder_activation = encoder_activation,
          .norm = "lm_head.norm",
          .epsilon = {}};
}

constexpr TokenHeadForm JinaV3MaskedLm() {
  TokenHeadForm form = RobertaMaskedLm("JinaEmbeddingsV3ForMaskedLM");
  form.epsilon = {};
  return form;
}

constexpr TokenHeadForm AlbertMaskedLm(absl::string_view architecture) {
  return {.architecture = architecture,
          .kind = kMaskedLm,
          .out = "predictions.decoder",
          .out_bias = "predictions.bias",
          .dense = "predictions.dense",
          .encoder_activation = true,
          .norm = "predictions.LayerNorm",
          .epsilon = kLayerNormEps};
}

constexpr TokenHeadForm TokenLabels(absl::string_view architecture) {
  return {.architecture = architecture, .kind = kTokenLabels, .out = "classifier"};
}

constexpr TokenHeadForm kTokenHeadForms[] = {
    AlbertMaskedLm("AlbertForMaskedLM"),
    AlbertMaskedLm("AlbertForPreTraining"),
    BertMaskedLm("BertForMaskedLM"),
    BertMaskedLm("BertForPreTraining"),
    RobertaMaskedLm("RobertaForMaskedLM"),
    RobertaMaskedLm("CamembertForMaskedLM"),
    RobertaMaskedLm("XLMRobertaForMaskedLM"),
    RobertaMaskedLm("MPNetForMaskedLM"),
    {.architecture = "DistilBertForMaskedLM",
     .kind = kMaskedLm,
     .out = "vocab_projector",
     .dense = "vocab_transform",
     .encoder_activation = true,
     .norm = "vocab_layer_norm",
     .epsilon = {nullptr, 1e-12}},
    {.architecture = "ElectraForMaskedLM",
     .kind = kMaskedLm,
     .out = "generator_lm_head",
     .dense = "generator_predictions.dense",
     .norm = "generator_predictions.LayerNorm",
     .epsilon = kLayerNormEps},
    RobertaMaskedLm("EsmForMaskedLM"),
    ModernBert("ModernBertForMaskedLM", kMaskedLm, "decoder"),
    NomicMaskedLm("NomicBertForMaskedLM"),
    GteMaskedLm("GteForMaskedLM", /*encoder_activation=*/false),
    GteMaskedLm("NewForMaskedLM", /*encoder_activation=*/true),
    JinaV3MaskedLm(),
    TokenLabels("AlbertForTokenClassification"),
    TokenLabels("BertForTokenClassification"),
    TokenLabels("RobertaForTokenClassification"),
    TokenLabels("CamembertForTokenClassification"),
    TokenLabels("XLMRobertaForTokenClassification"),
    TokenLabels("MPNetForTokenClassification"),
    TokenLabels("DistilBertForTokenClassification"),
    TokenLabels("ElectraForTokenClassification"),
    TokenLabels("EsmForTokenClassification"),
    ModernBert("ModernBertForTokenClassification", kTokenLabels, "classifier"),
    TokenLabels("NomicBertForTokenClassification"),
    TokenLabels("GteForTokenClassification"),
    TokenLabels("NewForTokenClassification"),
    TokenLabels("JinaEmbeddingsV3ForTokenClassification"),
    TokenLabels("DebertaV2ForTokenClassification"),
};

const TokenHeadForm* FindTokenHeadForm(absl::string_view architecture) {
  for (const TokenHeadForm& form : kTokenHeadForms) {
    if (form.architecture == architecture) return &form;
  }
  return nullptr;
}

bool HasAny(const TokenHeadForm& form, const TensorStore& store) {
  const auto has = [&store](absl::string_view name, absl::string_view suffix) {
    return store.Find(absl::StrCat(name, suffix)) != nullptr;
  };
  return has(form.dense, ".weight") || has(form.norm, FindNormSuffixes(store, form.norm).gamma) ||
         has(form.out, ".bias") || has(form.out_bias, "");
}

class TokenHeadReader {
 public:
  TokenHeadReader(const JsonNode& json, const EncoderConfig& config, const EncoderWeights& weights,
                  TensorStore& store)
      : json_(json), config_(config), weights_(weights), store_(store) {}

  absl::StatusOr<std::vector<TokenHead>> Read(const TokenHeadForm& form) {
    std::vector<TokenHead> heads;
    if (form.kind == kMaskedLm && !HasAny(form, store_)) return heads;
    TokenHead head{.kind = form.kind, .storage = weights_.storage};
    if (!form.dense.empty()) ATTENDANT_RETURN_IF_ERROR(ReadTransform(form, head));
    if (form.kind == kMaskedLm) {
      ATTENDANT_RETURN_IF_ERROR(ReadDecoder(form, head.out));
    } else {
      ATTENDANT_ASSIGN_OR_RETURN(const int64_t labels, CountLabels(json_, form.out, store_));
      // The matrix first: a shape may count more labels than it has values.
      ATTENDANT_RETURN_IF_ERROR(ReadMatrix(form.out, labels, config_.hidden, head.out));
      ATTENDANT_RETURN_IF_ERROR(CheckLabelCount(form.out, labels));
      ATTENDANT_RETURN_IF_ERROR(ReadBias(form, form.out, ".bias", labels, head.out.bias));
      ATTENDANT_ASSIGN_OR_RETURN(head.labels, ReadLabels(json_, labels));
    }
    heads.push_back(std::move(head));
    return heads;
  }

 private:
  bool Has(absl::string_view name, absl::string_view suffix) const {
    return store_.Find(absl::StrCat(name, suffix)) != nullptr;
  }

  // Each thread has room for 128 rows of them.
  static absl::Status CheckLabelCount(absl::string_view out, int64_t labels) {
    constexpr int64_t kMaxLabels = 1 << 16;
    if (labels <= kMaxLabels) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("`", out, "` has ", labels, " labels, of tokens the limit is ", kMaxLabels));
  }

  absl::Status ReadTransform(const TokenHeadForm& form, TokenHead& head) {
    // A decoder reads rows as wide as the token embeddings, which it often is.
    const int64_t width = form.kind == kMaskedLm ? config_.input_width() : config_.hidden;
    ATTENDANT_RETURN_IF_ERROR(ReadMatrix(form.dense, width, config_.hidden, head.dense));
    ATTENDANT_RETURN_IF_ERROR(ReadBias(form, form.dense, ".bias", width, head.dense.bias));
    if (form.encoder_activation) head.activation = config_.activation;
    ATTENDANT_RETURN_IF_ERROR(CheckText(json_, "classifier_activation", "gelu"));
    const NormSuffixes suffixes = FindNormSuffixes(store_, form.norm);
    ATTENDANT_RETURN_IF_ERROR(
        ReadVector(absl::StrCat(form.norm, suffixes.gamma), width, head.norm.gamma));
    ATTENDANT_RETURN_IF_ERROR(ReadBias(form, form.norm, suffixes.beta, width, head.norm.beta));
    if (form.epsilon.field == nullptr) {
      const bool own = form.epsilon.otherwise != 0;
      head.norm_epsilon =
          own ? static_cast<float>(form.epsilon.otherwise) : config_.layer_norm_epsilon;
      return absl::OkStatus();
    }
    return ReadLayerNormEpsilon(json_, form.epsilon.field, form.epsilon.otherwise,
                                head.norm_epsilon);
  }

  // [vocab, input_width]: its own, or the token embeddings.
  absl::Status ReadDecoder(const TokenHeadForm& form, LinearWeights& out) {
    if (Has(form.out, ".weight")) {
      ATTENDANT_RETURN_IF_ERROR(ReadMatrix(form.out, config_.vocab, config_.input_width(), out));
    } else {
      ATTENDANT_RETURN_IF_ERROR(CheckTied(form));
      out.weight = weights_.token_embedding;
    }
    if (Has(form.out, ".bias") || form.out_bias.empty()) {
      return ReadBias(form, form.out, ".bias", config_.vocab, out.bias);
    }
    if (form.optional_biases && !Has(form.out_bias, "")) return absl::OkStatus();
    return ReadVector(std::string(form.out_bias), config_.vocab, out.bias);
  }

  absl::Status CheckTied(const TokenHeadForm& form) const {
    bool tied = true;
    ATTENDANT_RETURN_IF_ERROR(json_.Read("tie_word_embeddings", tied));
    if (tied) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("tensor `", form.out,
                                                   ".weight` is missing, and `tie_word_embeddings` "
                                                   "is false"));
  }

  absl::Status ReadMatrix(absl::string_view name, int64_t outputs, int64_t inputs,
                          LinearWeights& linear) {
    const std::array<int64_t, 2> dims = {outputs, inputs};
    ATTENDANT_ASSIGN_OR_RETURN(const float* values, Values(absl::StrCat(name, ".weight"), dims));
    linear.weight = {values, dims};
    return absl::OkStatus();
  }

  absl::Status ReadVector(const std::string& name, int64_t size, TensorView<const float, 1>& to) {
    const std::array<int64_t, 1> dims = {size};
    ATTENDANT_ASSIGN_OR_RETURN(const float* values, Values(name, dims));
    to = {values, dims};
    return absl::OkStatus();
  }

  absl::Status ReadBias(const TokenHeadForm& form, absl::string_view name, absl::string_view suffix,
                        int64_t size, TensorView<const float, 1>& to) {
    if (form.optional_biases && !Has(name, suffix)) return absl::OkStatus();
    return ReadVector(absl::StrCat(name, suffix), size, to);
  }

  absl::StatusOr<const float*> Values(const std::string& name, std::span<const int64_t> dims) {
    return ReadTensor(store_, name, dims, "the encoder and the config make it");
  }

  const JsonNode& json_;
  const EncoderConfig& config_;
  const EncoderWeights& weights_;
  TensorStore& store_;
};

}  // namespace

absl::StatusOr<std::vector<TokenHead>> ReadTokenHeads(const JsonNode& json,
                                                      const EncoderConfig& config,
                                                      const EncoderWeights& weights,
                                                      const std::string& directory,
                                                      TensorStore& store) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string architecture, FirstArchitecture(json));
  const TokenHeadForm* const form = FindTokenHeadForm(architecture);
  if (form == nullptr) return std::vector<TokenHead>();
  absl::StatusOr<std::vector<TokenHead>> heads =
      TokenHeadReader(json, config, weights, store).Read(*form);
  if (heads.ok()) return heads;
  return absl::Status(heads.status().code(),
                      absl::StrCat(directory, ": ", heads.status().message()));
}

int64_t CountTiedValues(const JsonNode& json, const EncoderConfig& config,
                        const TensorStore& store) {
  const absl::StatusOr<std::string> architecture = FirstArchitecture(json);
  const TokenHeadForm* const form = architecture.ok() ? FindTokenHeadForm(*architecture) : nullptr;
  if (form == nullptr || form->kind != kMaskedLm || !HasAny(*form, store)) return 0;
  const bool tied = store.Find(absl::StrCat(form->out, ".weight")) == nullptr;
  return tied ? config.vocab * config.input_width() : 0;
}

}  // namespace attendant
