// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/tei/predict.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/requests/ranking.h"
#include "server/text/unicode/utf8.h"

namespace attendant::tei {
namespace {

absl::StatusOr<SequenceContent> ContentFromProto(const v1::PredictRequest& request) {
  if (request.inputs().empty()) return absl::InvalidArgumentError("inputs is empty");
  return SequenceContent(request.inputs());
}

absl::StatusOr<SequenceContent> ContentFromProto(const v1::PredictPairRequest& request) {
  if (request.inputs_size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("inputs has ", request.inputs_size(), " texts, it must have 2"));
  }
  return SequenceContent(TextPair{.first = std::make_shared<const std::string>(request.inputs(0)),
                                  .second = request.inputs(1)});
}

int64_t Characters(const std::string& text) { return CountCharacters(text); }
int64_t Characters(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  int64_t sum = 0;
  for (const std::string& text : texts) sum += CountCharacters(text);
  return sum;
}

}  // namespace

template <typename Request>
absl::StatusOr<EncodeInput> PredictRun<Request>::FromMessage() {
  const Request& message = this->request();
  this->AddCharacters(Characters(message.inputs()));
  ATTENDANT_RETURN_IF_ERROR(CheckClassifier(this->model()));
  EncodeInput input;
  input.scores = true;
  if (message.raw_scores()) input.score_activation = ScoreActivation::kNone;
  ATTENDANT_ASSIGN_OR_RETURN(
      input.truncation, TruncationFromProto(message.truncate(), message.truncation_direction()));
  ATTENDANT_ASSIGN_OR_RETURN(SequenceContent content, ContentFromProto(message));
  input.sequences.push_back(std::move(content));
  return input;
}

template <typename Request>
void PredictRun<Request>::Fill(EncodeOutput& output, v1::PredictResponse& response) {
  const std::vector<float>& scores = output.sequences[0].scores;
  for (const size_t label : ByScore(scores)) {
    v1::Prediction& prediction = *response.add_predictions();
    prediction.set_score(scores[label]);
    prediction.set_label(this->model().classifier->labels[label]);
  }
}

// A Prediction in memory, with its label.
template <typename Request>
int64_t PredictRun<Request>::TextBytes(const EncodeOutput& /*output*/) const {
  constexpr int64_t kPredictionBytes = 80;
  int64_t bytes = 0;
  for (const std::string& label : this->model().classifier->labels) {
    bytes += kPredictionBytes + static_cast<int64_t>(label.size());
  }
  return bytes;
}

PredictService::PredictService(const Dependencies& dependencies)
    : RawService(dependencies.encode.requests.gate, dependencies.encode.requests.budgets),
      predict_(dependencies, Method::kTeiPredict, Classifies),
      predict_pair_(dependencies, Method::kTeiPredict, Classifies) {
  ServeRequests("Predict", "PredictStream", predict_);
  ServeRequests("PredictPair", "PredictPairStream", predict_pair_);
}

}  // namespace attendant::tei
