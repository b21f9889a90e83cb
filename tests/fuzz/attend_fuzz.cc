// SPDX-License-Identifier: Apache-2.0
// An AttendRequest as it comes from the wire: checked, measured, computed within small limits,
// answered.
#include <memory>

#include "kernels/checkpoints/attention_module.h"
#include "kernels/core/check.h"
#include "kernels/core/status_macros.h"
#include "server/protocols/attention/operation.h"
#include "server/protocols/attention/plan.h"
#include "server/protocols/attention/to_proto.h"
#include "tests/fuzz/harness.h"

namespace attendant {
namespace {

constexpr int64_t kMaxResponseBytes = 1 << 20;

std::unique_ptr<AttentionModel> NewModel(const std::string& name) {
  auto model = std::make_unique<AttentionModel>();
  model->name = name;
  model->isa = *attention::FindIsa("auto");
  model->limits = {.max_tokens = 512, .max_bytes = 4 << 20, .max_operations = 1 << 22};
  return model;
}

std::unique_ptr<AttentionModel> LoadModel(const std::string& name) {
  auto checkpoint = LoadAttentionModule("tests/golden/attention/" + name);
  ATTENDANT_CHECK(checkpoint.ok());
  auto module = attention::MakeModule(checkpoint->config, std::move(checkpoint->weights),
                                      DType::kF32, *attention::FindIsa("auto"));
  ATTENDANT_CHECK(module.ok());
  std::unique_ptr<AttentionModel> model = NewModel(name);
  model->module = *std::move(module);
  return model;
}

const AttentionModel& ModelOf(const v1::AttendRequest& request) {
  static const auto& operators = *NewModel("attention").release();
  static const auto& multi_head = *LoadModel("mha_cross").release();
  static const auto& encoder = *LoadModel("encoder_pre_norm").release();
  if (request.model() == "mha_cross") return multi_head;
  return request.model() == "encoder_pre_norm" ? encoder : operators;
}

// As many bytes as shape and number format say.
void CheckTensor(const v1::Tensor& tensor, NumberFormat format) {
  int64_t bytes = BytesPerValue(format);
  for (int64_t dim : tensor.shape()) bytes *= dim;
  ATTENDANT_CHECK(static_cast<int64_t>(tensor.data().size()) == bytes);
}

absl::StatusOr<std::unique_ptr<AttendOperation>> MakeOperation(const v1::AttendRequest& request,
                                                               NumberFormat& format) {
  const AttentionModel& model = ModelOf(request);
  ATTENDANT_ASSIGN_OR_RETURN(AttendPlan plan, PlanAttend(request, model));
  format = plan.answer_format;
  return AttendOperation::Make(std::move(plan), model, kMaxResponseBytes, {});
}

void Attend(const v1::AttendRequest& request) {
  static auto& pool = *new ThreadPool(1);
  NumberFormat format{};
  const absl::StatusOr<std::unique_ptr<AttendOperation>> operation = MakeOperation(request, format);
  if (!operation.ok()) {
    const absl::StatusCode code = operation.status().code();
    ATTENDANT_CHECK(code == absl::StatusCode::kInvalidArgument ||
                    code == absl::StatusCode::kUnimplemented);
    return;
  }
  ATTENDANT_CHECK((*operation)->response_bytes() <= kMaxResponseBytes);
  ATTENDANT_CHECK((*operation)->Run(pool).ok());
  v1::AttendResponse response;
  ToProto(**operation, format, response);
  CheckTensor(response.output(), format);
  if (response.has_weights()) CheckTensor(response.weights(), format);
}

}  // namespace
}  // namespace attendant

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attendant::v1::AttendRequest request;
  if (request.ParseFromArray(data, static_cast<int>(size))) attendant::Attend(request);
  return 0;
}
