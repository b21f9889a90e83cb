// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/infer_run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/protocols/kserve/input_tensors.h"
#include "server/protocols/kserve/output_tensors.h"
#include "server/protocols/kserve/parameters.h"

namespace attendant {
namespace {

class InferRun final : public EncodeRun {
 public:
  // `regions` is null where there is no shared memory.
  InferRun(const EncodeDependencies& dependencies, const KServeModels& models,
           const SharedMemoryRegions* regions, const InferMessageAccess& access, RequestCall call,
           inference::ModelInferResponse& response)
      : EncodeRun(dependencies, std::move(call)),
        models_(models),
        regions_(regions),
        access_(access),
        response_(response) {}

 private:
  std::string ModelName(const std::string& name) const override {
    return std::string(SplitServedName(name).first);
  }

  absl::string_view ModelVersion() const override {
    return access_.request(message()).model_version();
  }

  absl::Duration Timeout() const override {
    const absl::StatusOr<InferParameters> parameters =
        FromProto(access_.request(message()).parameters());
    return parameters.ok() ? parameters->timeout : absl::InfiniteDuration();  // FromMessage refuses
  }

  absl::StatusOr<std::shared_ptr<EncoderModel>> FindModel() override {
    const inference::ModelInferRequest& request = access_.request(message());
    ATTENDANT_ASSIGN_OR_RETURN(ref_, models_.Find(request.model_name(), request.model_version()));
    return ref_.model;
  }

  absl::StatusOr<EncodeInput> FromMessage() override {
    const inference::ModelInferRequest& request = access_.request(message());
    ATTENDANT_ASSIGN_OR_RETURN(const InferParameters parameters, FromProto(request.parameters()));
    ATTENDANT_RETURN_IF_ERROR(CheckRequestedOutputs(request, ref_.info, regions_ != nullptr));
    ATTENDANT_ASSIGN_OR_RETURN(const SharedInputs shared, ReadSharedInputs(request));
    ATTENDANT_ASSIGN_OR_RETURN(InferInputs inputs, InputsFromProto(request, ref_.info, shared));
    if (!ref_.info.kind->sized_by_results) {
      ATTENDANT_RETURN_IF_ERROR(FindSharedOutput(request, OutputBytes(inputs, ref_.info)));
    }
    seq_ = inputs.seq;
    EncodeInput input;
    input.sequences = std::move(inputs.sequences);
    ref_.info.kind->ask(input);
    input.prompt_name = parameters.prompt_name;
    for (const auto& output : request.outputs()) wanted_outputs_.push_back(output.name());
    input.priority = parameters.priority;
    return input;
  }

  absl::StatusOr<WorkRequest> Prepare() override {
    ATTENDANT_ASSIGN_OR_RETURN(WorkRequest request, EncodeRun::Prepare());
    ATTENDANT_RETURN_IF_ERROR(CheckPadded());
    ref_.statistics_by_name->Enter(*ref_.info.kind);
    entered_ = true;
    return request;
  }

  int64_t TextBytes(const EncodeOutput& output) const override {
    constexpr auto kValueBytes = static_cast<int64_t>(sizeof(float));
    const int64_t padded = PaddedBytes(output, ref_.info);
    return padded +
           std::max(padded, output.response_bytes) / kValueBytes * access_.text_bytes(message());
  }

  absl::Status CheckPadded() const {
    const int64_t bytes = PaddedBytes(output(), ref_.info);
    if (bytes <= limits().max_response_bytes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "the outputs of ", output().sequences.size(), " texts, padded to the longest, take ", bytes,
        " bytes, the limit is ", limits().max_response_bytes));
  }

  void ToMessage(EncodeOutput& output) override {
    response_.set_id(call().state->client_id());
    response_.set_model_name(ref_.info.name);
    response_.set_model_version(ref_.info.version);
    ToProto(output, ref_.info, seq_, response_);
    KeepOutputs(wanted_outputs_, response_);
    if (shared_output_) MoveToSharedMemory();
  }

  // The inputs of any model are fewer than this; more are refused later.
  static constexpr int kMaxInputs = 8;

  absl::StatusOr<SharedInputs> ReadSharedInputs(const inference::ModelInferRequest& request) {
    SharedInputs contents;
    if (regions_ == nullptr) return contents;
    for (int i = 0; i < std::min(request.inputs_size(), kMaxInputs); ++i) {
      const auto& input = request.inputs(i);
      ATTENDANT_ASSIGN_OR_RETURN(const std::optional<SharedTensor> shared,
                                 SharedTensorFromProto(input.name(), input.parameters()));
      if (!shared) continue;
      ATTENDANT_ASSIGN_OR_RETURN(const SharedRange range,
                                 regions_->Find(shared->region, shared->offset, shared->bytes));
      ATTENDANT_RETURN_IF_ERROR(AcquireRequest(2 * range.bytes()));  // read, then taken apart
      ATTENDANT_ASSIGN_OR_RETURN(contents[i], range.Read());
    }
    return contents;
  }

  absl::Status FindSharedOutput(const inference::ModelInferRequest& request, int64_t bytes) {
    if (regions_ == nullptr || request.outputs_size() == 0) return absl::OkStatus();
    const auto& output = request.outputs(0);
    ATTENDANT_ASSIGN_OR_RETURN(shared_output_,
                               SharedTensorFromProto(output.name(), output.parameters()));
    if (!shared_output_) return absl::OkStatus();
    ATTENDANT_ASSIGN_OR_RETURN(
        shared_range_,
        regions_->Find(shared_output_->region, shared_output_->offset, shared_output_->bytes));
    if (bytes <= shared_range_.bytes()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("output ", Quote(output.name()), " has ", bytes,
                                                   " bytes, its shared memory has ",
                                                   shared_range_.bytes()));
  }

  // An output whose memory the client has shortened meanwhile stays inside the message.
  void MoveToSharedMemory() {
    std::string& data = *response_.mutable_raw_output_contents(0);
    if (!shared_range_.Write(data).ok()) return;
    shared_output_->bytes = static_cast<int64_t>(data.size());
    ToProto(*shared_output_, *response_.mutable_outputs(0)->mutable_parameters());
    data = std::string();
  }

  void OnEnd(const absl::Status& status) override {
    if (ref_.model == nullptr) return;  // refused before the model was found
    if (entered_) ref_.statistics_by_name->Leave(*ref_.info.kind);
    if (!status.ok()) return ref_.statistics().RecordFailure(times().total());
    ref_.statistics().RecordSuccess({.sequences = static_cast<int64_t>(output().sequences.size()),
                                     .total = times().total(),
                                     .queue = times().queue,
                                     .compute_input = times().decode,
                                     .compute_infer = times().compute,
                                     .compute_output = times().serialize},
                                    absl::Now());
  }

  int64_t AnswerBytes() const override { return static_cast<int64_t>(response_.ByteSizeLong()); }

  const KServeModels& models_;
  const SharedMemoryRegions* const regions_;
  const InferMessageAccess& access_;
  inference::ModelInferResponse& response_;
  std::optional<SharedTensor> shared_output_;
  SharedRange shared_range_;  // of the output
  KServeModelRef ref_;
  std::vector<std::string> wanted_outputs_;  // empty: all
  int64_t seq_ = 0;                          // of ids: their padded length
  bool entered_ = false;                     // the statistics count batches for this request
};

}  // namespace

void StartInfer(const EncodeDependencies& dependencies, const KServeModels& models,
                const SharedMemoryRegions* regions, const InferMessageAccess& access,
                RequestCall call, inference::ModelInferResponse& response) {
  RequestRun::Start(
      std::make_unique<InferRun>(dependencies, models, regions, access, std::move(call), response));
}

}  // namespace attendant
