// SPDX-License-Identifier: Apache-2.0
// /pooling of vLLM: what the model is for, an embedding, scores of labels, or one of either for
// each token.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/answer_form.h"
#include "server/http/doors/cohere/cohere.h"
#include "server/http/doors/inputs.h"
#include "server/http/doors/openai.h"
#include "server/http/doors/vllm/parts.h"
#include "server/http/json/json_writer.h"
#include "server/requests/only_model.h"
#include "server/requests/tasks.h"

namespace attendant {
namespace {

bool Has(const EncoderModel& model, TaskKind kind) { return model.heads.Find(kind).has_value(); }

// The values of a sequence: one row, or one for each token.
struct Values {
  const std::vector<float>& values;
  size_t columns = 0;  // of each row; 0: they are one
};

Values HeadValues(const EncodeOutput& output, const EncodedSequence& sequence, TaskKind kind) {
  const size_t task = FindTask(output, kind);
  return {sequence.result.tasks[task].values, static_cast<size_t>(output.tasks[task].columns)};
}

// One of vLLM's tasks.
struct PoolingKind {
  absl::string_view name;
  bool (*fits)(const EncoderModel& model);
  // Without activation: embeddings of any length, and logits.
  void (*ask)(bool activation, EncodeInput& input);
  Values (*values)(const EncodeOutput& output, const EncodedSequence& sequence);
  bool always_activated = false;
};

// The first one that fits is what a request gets that names none.
constexpr PoolingKind kKinds[] = {
    {"token_classify", [](const EncoderModel& model) { return Has(model, TaskKind::kTokenScores); },
     [](bool activation, EncodeInput& input) {
       input.tasks.push_back({.kind = TaskKind::kTokenScores, .raw = !activation});
     },
     [](const EncodeOutput& output, const EncodedSequence& sequence) {
       return HeadValues(output, sequence, TaskKind::kTokenScores);
     }},
    // Not for ColBERT's models, whose vectors of tokens are all that they are trained for.
    {"embed",
     [](const EncoderModel& model) {
       return Embeds(model.Facts()) &&
              (!Has(model, TaskKind::kMultiVector) || Has(model, TaskKind::kSparse));
     },
     [](bool activation, EncodeInput& input) {
       input.pooled = true;
       if (!activation) input.normalize = false;
     },
     [](const EncodeOutput& /*output*/, const EncodedSequence& sequence) {
       return Values{sequence.result.pooled};
     }},
    {"classify", [](const EncoderModel& model) { return model.classifier.has_value(); },
     [](bool activation, EncodeInput& input) {
       input.scores = true;
       if (!activation) input.score_activation = ScoreActivation::kNone;
     },
     [](const EncodeOutput& /*output*/, const EncodedSequence& sequence) {
       return Values{sequence.scores};
     }},
    {"token_embed", [](const EncoderModel& model) { return Has(model, TaskKind::kMultiVector); },
     [](bool /*activation*/, EncodeInput& input) {
       input.tasks.push_back({.kind = TaskKind::kMultiVector});
     },
     [](const EncodeOutput& output, const EncodedSequence& sequence) {
       return HeadValues(output, sequence, TaskKind::kMultiVector);
     },
     /*always_activated=*/true}};

// INVALID_ARGUMENT names what the model has.
absl::StatusOr<const PoolingKind*> KindFromJson(JsonView request, const EncoderModel& model) {
  std::optional<std::string> task;
  ATTENDANT_RETURN_IF_ERROR(request.Read("task", task));
  std::vector<absl::string_view> fitting;
  for (const PoolingKind& kind : kKinds) {
    if (!kind.fits(model)) continue;
    if (!task || *task == kind.name) return &kind;
    fitting.push_back(kind.name);
  }
  if (fitting.empty() && !task) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model ", Quote(model.name), " has sparse vectors only: POST /embed_sparse gives them"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("task must be ", fitting.empty() ? "absent" : absl::StrJoin(fitting, " or "),
                   " for model ", Quote(model.name), ", not ", Quote(*task)));
}

absl::Status CheckUnsupported(JsonView request) {
  ATTENDANT_RETURN_IF_ERROR(CheckAnswerForm(request));
  ATTENDANT_RETURN_IF_ERROR(CheckSpecialTokens(request));
  for (const absl::string_view field : {"dimensions", "messages", "normalize"}) {
    const std::optional<JsonView> value = request.Find(field);
    if (value) return WrongJsonType(field, "absent", *value);
  }
  return absl::OkStatus();
}

class PoolingRun final : public DoorRun {
 public:
  using DoorRun::DoorRun;

 private:
  absl::StatusOr<EncodeInput> FromJson(JsonView request) override {
    EncodeInput input;
    ATTENDANT_RETURN_IF_ERROR(CheckUnsupported(request));
    ATTENDANT_RETURN_IF_ERROR(VllmTruncationFromJson(request, input));
    ATTENDANT_RETURN_IF_ERROR(Base64FromJson(request, base64_));
    ATTENDANT_ASSIGN_OR_RETURN(kind_, KindFromJson(request, model()));
    bool activation = true;
    ATTENDANT_RETURN_IF_ERROR(request.Read("use_activation", activation));
    if (!activation && kind_->always_activated) {
      return absl::InvalidArgumentError(
          absl::StrCat("use_activation must be true for ", kind_->name, ", not false"));
    }
    kind_->ask(activation, input);
    ATTENDANT_RETURN_IF_ERROR(SequencesFromJson(request, "input", limits(), input.sequences));
    return input;
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    const VllmAnswer answer{
        .id = AnswerId(call()), .model = model().name, .object = "pooling", .field = "data"};
    AppendVllmAnswer(answer, output.sequences.size(), output.tokens(), json, [&](size_t i) {
      AppendValues(kind_->values(output, output.sequences[i]), json);
    });
  }

  void AppendValues(const Values& data, std::string& json) const {
    if (base64_) return AppendJsonBase64(data.values, json);
    if (data.columns == 0) return AppendJsonFloats(data.values, json);
    AppendJsonRows(data.values, data.columns, json);
  }

  bool compressible() const override { return !base64_; }

  bool base64_ = false;
  const PoolingKind* kind_ = nullptr;  // set by FromJson
};

std::string PoolingSchema() {
  return absl::StrCat(R"({"type":"object","required":["input"],"properties":{)", VllmProperties(),
                      R"(,"input":)", kSequencesSchema, R"(,"encoding_format":)",
                      kEncodingFormatSchema,
                      R"(,"task":{"enum":["embed","classify","token_embed","token_classify"]},)",
                      AnswerFormProperties(),
                      R"(,"add_special_tokens":{"const":true},)"
                      R"("dimensions":{"type":"null"},"messages":{"type":"null"},)"
                      R"("normalize":{"type":"null"}}})");
}

constexpr char kValuesSchema[] = R"({"oneOf":[{"type":"array","items":{"type":"number"}},
{"type":"array","items":{"type":"array","items":{"type":"number"}}},
{"type":"string","contentEncoding":"base64"}]})";

}  // namespace

HttpRoute VllmPoolingRoute(const DoorDependencies& dependencies) {
  return DoorRoute<PoolingRun>(dependencies, "/pooling", Method::kVllmPooling,
                               FieldOrOnlyModel(AnyEncoder), OpenAiError,
                               {"vLLM: what the model makes of texts or token ids", PoolingSchema(),
                                VllmAnswerSchema("pooling", "data", kValuesSchema)});
}

}  // namespace attendant
