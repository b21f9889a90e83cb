// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/tei/rerank.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/protocols/typed_message.h"
#include "server/requests/ranking.h"
#include "server/rpc/call/collecting_call.h"
#include "server/rpc/scan/received_message.h"
#include "server/text/unicode/utf8.h"

namespace attendant::tei {
namespace {

// A rank in memory, without its text.
constexpr int64_t kRankBytes = 64;

absl::Status CheckReranker(const EncoderModel& model) {
  if (CanRank(model)) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(CheckClassifier(model));
  const int64_t labels = model.classifier->num_labels();
  return absl::FailedPreconditionError(
      absl::StrCat("model '", model.name, "' is no reranker: it has ", labels, " labels"));
}

WireRules RerankRules(const EncodeLimits& limits) {
  return {.limits = {{"tei.v1.RerankRequest.texts", limits.max_request_sequences}}};
}

// A request that came as a stream of messages.
class CollectedRequest final : public TypedMessage<v1::RerankRequest> {
 public:
  CollectedRequest(absl::Status status, std::string model, v1::RerankRequest request)
      : status_(std::move(status)), model_(std::move(model)), request_(std::move(request)) {}

  int64_t bytes() const override { return static_cast<int64_t>(request_.ByteSizeLong()); }
  absl::StatusOr<int64_t> Scan() override {
    if (!status_.ok()) return status_;
    return static_cast<int64_t>(request_.SpaceUsedLong());
  }
  absl::Status Parse() override { return absl::OkStatus(); }
  const std::string& id() const override { return id_; }
  const std::string& model() const override { return model_; }
  const v1::RerankRequest& message() const override { return request_; }

 private:
  const absl::Status status_;
  const std::string id_;
  const std::string model_;
  const v1::RerankRequest request_;
};

}  // namespace

absl::StatusOr<EncodeInput> RerankRun::FromMessage() {
  const v1::RerankRequest& message = request();
  ATTENDANT_RETURN_IF_ERROR(CheckReranker(model()));
  if (message.query().empty()) return absl::InvalidArgumentError("query is empty");
  if (message.texts().empty()) return absl::InvalidArgumentError("texts is empty");
  ATTENDANT_RETURN_IF_ERROR(CheckQuery("query", message.query(), message.texts_size()));
  EncodeInput input = ScoresInput();
  if (message.raw_scores()) input.score_activation = ScoreActivation::kNone;
  ATTENDANT_ASSIGN_OR_RETURN(
      input.truncation, TruncationFromProto(message.truncate(), message.truncation_direction()));
  AddCharacters(CountCharacters(message.query()) * message.texts_size());
  const auto query = std::make_shared<const std::string>(message.query());
  for (const std::string& text : message.texts()) {
    AddCharacters(CountCharacters(text));
    input.sequences.emplace_back(TextPair{.first = query, .second = text});
  }
  if (message.return_text()) texts_ = SecondTexts(input.sequences);
  return input;
}

int64_t RerankRun::TextBytes(const EncodeOutput& output) const {
  int64_t bytes = kRankBytes * static_cast<int64_t>(output.sequences.size());
  for (const std::string& text : texts_) bytes += static_cast<int64_t>(text.size());
  return bytes;
}

void RerankRun::Fill(EncodeOutput& output, v1::RerankResponse& response) {
  for (const size_t index : ByScore(output)) {
    v1::Rank& rank = *response.add_ranks();
    rank.set_index(static_cast<uint32_t>(index));
    if (!texts_.empty()) rank.set_text(std::move(texts_[index]));
    rank.set_score(output.sequences[index].scores[0]);
  }
}

class RerankService::Texts {
 public:
  Texts(const Dependencies& dependencies, std::string model, absl::Time deadline,
        v1::RerankResponse& response)
      : dependencies_(dependencies),
        model_(std::move(model)),
        deadline_(deadline),
        response_(response) {}

  bool Add(grpc::ByteBuffer& bytes) {
    v1::RerankStreamRequest message;
    WireSummary summary;
    status_ = ScanBuffer(PlainSchema<v1::RerankStreamRequest>(), bytes, summary);
    if (status_.ok()) status_ = ParseBuffer(bytes, message);
    if (!status_.ok()) return false;
    const auto limit = static_cast<int>(dependencies_.encode.limits.max_request_sequences);
    if (request_.texts_size() == limit) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("the stream has more than ", limit, " texts, the limit"));
      return false;
    }
    if (request_.texts().empty()) {
      request_.set_query(std::move(*message.mutable_query()));
      request_.set_truncate(message.truncate());
      request_.set_raw_scores(message.raw_scores());
      request_.set_return_text(message.return_text());
      request_.set_truncation_direction(message.truncation_direction());
    }
    request_.add_texts(std::move(*message.mutable_text()));
    return true;
  }

  void Run(const absl::Status& collected, std::shared_ptr<CallState> state, UnaryCall::Done done) {
    RequestCall call{.method = Method::kTeiRerank,
                     .message = std::make_unique<CollectedRequest>(
                         status_.ok() ? collected : status_, model_, std::move(request_)),
                     .deadline = deadline_,
                     .state = std::move(state),
                     .done = std::move(done)};
    RequestRun::Start(
        std::make_unique<RerankRun>(dependencies_.encode, std::move(call), response_));
  }

 private:
  const Dependencies& dependencies_;
  const std::string model_;
  const absl::Time deadline_;
  v1::RerankResponse& response_;
  absl::Status status_;
  v1::RerankRequest request_;
};

RerankService::RerankService(const Dependencies& dependencies)
    : RawService(dependencies.encode.requests.gate, dependencies.encode.requests.budgets),
      dependencies_(dependencies),
      rerank_(dependencies, Method::kTeiRerank, Ranks, RerankRules(dependencies.encode.limits)) {
  ServeRequests("Rerank", nullptr, rerank_);
  AddOpenMethod(streams_);
  ServeReader<v1::RerankResponse>(
      "RerankStream", MethodGroup::kInfer,
      [this](IncomingCall& call, v1::RerankResponse& response) {
        const absl::StatusOr<std::string> model =
            ModelOf(call.context, dependencies_.encode.requests.models, Ranks);
        const auto texts = std::make_shared<Texts>(dependencies_, model.value_or(std::string()),
                                                   Deadline(call.context), response);
        return CollectingCall::Start(
            streams_.calls, dependencies_.encode.requests.budgets, call,
            [texts](grpc::ByteBuffer& bytes) { return texts->Add(bytes); },
            [texts](const absl::Status& collected, std::shared_ptr<CallState> state,
                    UnaryCall::Done done) {
              texts->Run(collected, std::move(state), std::move(done));
            });
      });
}

}  // namespace attendant::tei
