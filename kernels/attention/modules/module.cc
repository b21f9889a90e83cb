// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/modules/module.h"

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/attention/check_call.h"
#include "kernels/attention/exact/exact_attention.h"
#include "kernels/attention/modules/module_types.h"
#include "kernels/attention/registry.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::attention {
namespace {

absl::StatusOr<Cost> MeasureModule(const Call& call, int threads) {
  if (call.module == nullptr) {
    return absl::InvalidArgumentError("this kind needs a loaded module");
  }
  return call.module->Measure(call, threads);
}

absl::Status RunModule(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                       const Outputs& outputs) {
  return call.module->Run(call, pool, scratch, outputs);
}

absl::Status ReferenceModule(const Call& call, const Outputs& outputs) {
  return call.module->RunReference(call, outputs);
}

}  // namespace

int64_t MaxPackedBytes(int64_t outputs, int64_t inputs) {
  // The widest panels have 64 outputs, the longest steps 64 inputs.
  constexpr int64_t kMaxFill = 63;
  return ((outputs + kMaxFill) * (inputs + kMaxFill) + outputs) *
         static_cast<int64_t>(sizeof(float));
}

absl::string_view Module::isa_name() const { return cpu::CpuIsaName(isa_.isa); }

Call Module::HeadsCall(const Call& call, const Projected& projected) const {
  const int64_t stride = projected.row_stride;
  const auto rows = [&](const std::byte* values, const Sequences& sequences) {
    return InputRows{.values = values,
                     .heads = config_.heads,
                     .dim = config_.head_dim(),
                     .batch_stride = sequences.seq() * stride,
                     .head_stride = config_.head_dim(),
                     .row_stride = stride};
  };
  Call heads = call;
  heads.kind = Kind::kDotProduct;
  heads.module = nullptr;
  heads.isa = &isa_;
  heads.query = rows(projected.q, call.queries);
  heads.key = rows(projected.k, call.keys);
  heads.value = rows(projected.v, call.keys);
  return heads;
}

absl::StatusOr<Cost> Module::MeasureHeads(const Call& call, int threads) const {
  if (call.kind != kind()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the call is not of the module's kind, ", FindOperator(kind())->name));
  }
  if (call.dtype != dtype_) {
    return absl::InvalidArgumentError(absl::StrCat("the call is in ", DTypeName(call.dtype),
                                                   ", the module in ", DTypeName(dtype_)));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckCall(call, config_.heads, /*gives_weights=*/true));
  ATTENDANT_RETURN_IF_ERROR(
      CheckEqual("query", call.query.heads, "the module's input", 1, "heads"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckEqual("query", call.query.dim, "the module", config_.hidden, "dims"));
  ATTENDANT_RETURN_IF_ERROR(CheckEqual("key", call.key.dim, "the module", config_.key_dim, "dims"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckEqual("value", call.value.dim, "the module", config_.value_dim, "dims"));
  ATTENDANT_ASSIGN_OR_RETURN(Cost cost, MeasureExact(HeadsCall(call, {}), threads));
  cost.out_heads = 1;
  cost.out_dim = config_.hidden;
  return cost;
}

absl::Status Module::RunHeads(const Call& call, const Projected& projected, ThreadPool& pool,
                              std::span<std::byte> scratch, std::byte* context,
                              float* weights) const {
  Call heads = HeadsCall(call, projected);
  if (weights == nullptr) heads.need_weights = WeightsWanted::kNone;
  const OutputRows out =
      OutputRows::TokensFirst(context, config_.heads, config_.head_dim(), call.queries.seq());
  return RunExact(heads, pool, scratch, {.out = out, .attention_weights = weights});
}

absl::StatusOr<std::unique_ptr<const Module>> MakeModule(const ModuleConfig& config,
                                                         ModuleWeights weights, DType dtype,
                                                         const cpu::IsaLevel* isa) {
  if (isa == nullptr) {
    return absl::UnavailableError("attention has no instruction set: it needs AVX2 and FMA");
  }
  ATTENDANT_RETURN_IF_ERROR(ValidateWeights(config, weights));
  if (dtype != DType::kF32 && dtype != DType::kBf16) {
    return absl::UnimplementedError(
        absl::StrCat("attention modules compute in f32 or bf16, not in ", DTypeName(dtype)));
  }
  if (dtype == DType::kBf16 && !isa->bf16) {
    return absl::UnimplementedError(
        absl::StrCat("attention modules in bf16 need AVX512_BF16 or AMX, cpu_isa is ",
                     cpu::CpuIsaName(isa->isa)));
  }
  try {
    return config.type == ModuleType::kMultiHead
               ? MakeMultiHead(config, std::move(weights), dtype, *isa)
               : MakeTransformerEncoder(config, std::move(weights), dtype, *isa);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the packed weights do not fit in memory");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("cannot prepare the module: ", error.what()));
  }
}

const Operator kMultiHeadOperator{
    .kind = Kind::kMultiHead,
    .name = "multi_head",
    .title = "multi-head",
    .formula = "concat_h(softmax(q_h k_h^T / sqrt(d)) v_h) W_o, with q_h = q W_q,h and so on",
    .time = "O(n h^2 + n^2 h)",
    .memory = "O(n h), and O(n^2) with weights",
    .use = "Several places to look at for every token; its projections are trained.",
    .gives_weights = true,
    .parameters = {},
    .measure = MeasureModule,
    .run = RunModule,
    .reference = ReferenceModule,
};

const Operator kTransformerOperator{
    .kind = Kind::kTransformer,
    .name = "transformer",
    .title = "transformer encoder",
    .formula = "x + multi_head(x), then x + ffn(x), each normalized, layer after layer",
    .time = "O(l (n h^2 + n^2 h))",
    .memory = "O(n h), and O(n^2) with weights",
    .use = "PyTorch's TransformerEncoder and its layers, as they were trained.",
    .gives_weights = true,
    .parameters = {},
    .measure = MeasureModule,
    .run = RunModule,
    .reference = ReferenceModule,
};

}  // namespace attendant::attention
