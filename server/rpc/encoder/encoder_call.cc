// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/encoder/encoder_call.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "server/rpc/encoder/messages.h"

namespace attendant {
namespace {

struct Run {
  EncoderCall call;
  const v1::EncodeRequest& request;
  v1::EncodeResponse& response;
  absl::AnyInvocable<void(const absl::Status&)> done;
  absl::Time arrival = absl::Now();
  ResponseFormat format{};

  void End(const absl::Status& status, const EncodeOutput* output, absl::Duration serialize) {
    call.pipeline.Finish(call.method, request.model(), status, output, serialize,
                         absl::Now() - arrival);
    done(status);
  }
};

void FillTimings(const EncodeOutput& output, absl::Duration total, v1::Timings& timings) {
  timings.set_tokenize_us(absl::ToInt64Microseconds(output.tokenize));
  timings.set_queue_us(absl::ToInt64Microseconds(output.queue));
  timings.set_compute_us(absl::ToInt64Microseconds(output.compute));
  timings.set_total_us(absl::ToInt64Microseconds(total));
}

void Answer(Run& run, absl::StatusOr<EncodeOutput> output) {
  if (!output.ok()) {
    return run.End(DeadlineInsteadOfCancelled(output.status(), run.call.deadline), nullptr, {});
  }
  const absl::Time start = absl::Now();
  run.response.set_id(run.request.id());
  run.response.set_model(run.request.model());
  EncodeResponseTensors(run.format, *output, run.response);
  FillTimings(*output, absl::Now() - run.arrival, *run.response.mutable_timings());
  run.End(absl::OkStatus(), &*output, absl::Now() - start);
}

void Submit(std::unique_ptr<Run> run) {
  if (run->call.cancellation->cancelled()) {
    return run->End(absl::CancelledError("cancelled by the client"), nullptr, {});
  }
  absl::StatusOr<DecodedRequest> decoded = DecodeRequest(run->request, run->call.pipeline.limits());
  if (!decoded.ok()) return run->End(decoded.status(), nullptr, {});
  run->format = decoded->format;
  decoded->input.method = run->call.method;
  decoded->input.deadline = run->call.deadline;
  // The answer may come, and end the call, before Encode returns: nothing of `run` is used after
  // it.
  EncodePipeline& pipeline = run->call.pipeline;
  const std::shared_ptr<Cancellation> cancellation = run->call.cancellation;
  cancellation->SetTicket(pipeline.Encode(
      std::move(decoded->input),
      [&cancellation](ByteBudget::Share share) { cancellation->HoldResponse(std::move(share)); },
      [run = std::move(run)](absl::StatusOr<EncodeOutput> output) mutable {
        Answer(*run, std::move(output));
      }));
}

}  // namespace

void RunEncoderCall(const EncoderCall& call, const v1::EncodeRequest& request,
                    v1::EncodeResponse& response,
                    absl::AnyInvocable<void(const absl::Status&)> done) {
  auto run = std::unique_ptr<Run>(
      new Run{.call = call, .request = request, .response = response, .done = std::move(done)});
  absl::StatusOr<ByteBudget::Share> share =
      call.pipeline.TakeRequest(request.model(), request.ByteSizeLong());
  if (!share.ok()) return run->End(share.status(), nullptr, {});
  call.cancellation->HoldRequest(*std::move(share));
  ReadRequest(request.ByteSizeLong(), call.executor,
              [run = std::move(run)]() mutable { Submit(std::move(run)); });
}

}  // namespace attendant
