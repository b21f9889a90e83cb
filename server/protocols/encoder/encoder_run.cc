// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/encoder/encoder_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/core/status_macros.h"
#include "server/protocols/encoder/messages.h"
#include "server/protocols/encoder/model_message.h"
#include "server/protocols/typed_message.h"
#include "server/protocols/wire/messages.h"
#include "server/requests/invalid.h"
#include "server/requests/outputs/late_scores.h"
#include "server/requests/tasks.h"

namespace attendant {
namespace {

// An answer that ignored the activation would be taken for a probability.
absl::Status CheckActivation(const EncoderModel& model, const EncodeInput& input) {
  const bool raw =
      input.score_activation.value_or(ScoreActivation::kNone) == ScoreActivation::kNone;
  if (!input.scores || raw || !ComparesPairs(model)) return absl::OkStatus();
  return Invalid("outputs.scores.activation must be NONE or unset for model '", model.name,
                 "', whose scores are sums over the vectors of a query");
}

class EncoderRun final : public EncodeRun {
 public:
  EncoderRun(const EncodeDependencies& dependencies, RequestCall call, v1::EncodeResponse& response)
      : EncodeRun(dependencies, std::move(call)), response_(response) {}

 private:
  absl::StatusOr<EncodeInput> FromMessage() override {
    const auto& request = Parsed<v1::EncodeRequest>(message());
    ATTENDANT_ASSIGN_OR_RETURN(form_, AnswerFormFromProto(request));
    ATTENDANT_ASSIGN_OR_RETURN(EncodeInput input, FromProto(request, limits()));
    ATTENDANT_RETURN_IF_ERROR(CheckActivation(model(), input));
    return input;
  }

  absl::string_view ModelVersion() const override {
    return Parsed<v1::EncodeRequest>(message()).model_version();
  }

  void ToMessage(EncodeOutput& output) override {
    response_.set_id(call().state->client_id());
    response_.set_model(call().model);
    ToProto(output, form_, response_);
    ToProto(times(), *response_.mutable_timings());
  }

  // Base64 takes four bytes for three. Of a head's result, half is ids, twelve bytes for four.
  int64_t TextBytes(const EncodeOutput& output) const override {
    constexpr int64_t kNumberBytes = 12;  // of the longest number, and its comma
    if (!MessageAs<TypedMessage<v1::EncodeRequest>>(message()).wants_json()) return 0;
    const bool has_ids = std::any_of(output.tasks.begin(), output.tasks.end(),
                                     [](const AskedTask& task) { return HasIds(task.kind); });
    int64_t bytes = has_ids ? 2 * output.response_bytes : output.response_bytes / 3;
    for (const EncodedSequence& sequence : output.sequences) {
      if (form_.token_ids) bytes += kNumberBytes * sequence.len();
      const EncodedSequence::RareOutputs& rare = sequence.rare_outputs();
      bytes += 2 * kNumberBytes * static_cast<int64_t>(rare.spans.size());
      bytes += 2 * kNumberBytes * static_cast<int64_t>(rare.token_offsets.size());
    }
    return bytes;
  }

  int64_t AnswerBytes() const override { return static_cast<int64_t>(response_.ByteSizeLong()); }

  v1::EncodeResponse& response_;
  AnswerForm form_;
};

}  // namespace

void StartEncode(const EncodeDependencies& dependencies, RequestCall call,
                 v1::EncodeResponse& response) {
  RequestRun::Start(std::make_unique<EncoderRun>(dependencies, std::move(call), response));
}

void DescribeEncoders(const ModelRegistry& models, v1::ListModelsResponse& response) {
  for (const ModelStatus& status : models.List()) {
    if (status.is_module) continue;  // attendant.v1.Attention lists it
    ToProto(status, *response.add_models());
  }
}

}  // namespace attendant
