// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/modules/module.h"

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/attention/modules/multi_head.h"
#include "kernels/attention/modules/transformer.h"
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

absl::string_view Module::isa_name() const { return CpuIsaName(isa_.isa); }

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
  try {
    return config.type == ModuleType::kMultiHead
               ? MultiHead::Create(config, std::move(weights), dtype, *isa)
               : TransformerEncoder::Create(config, std::move(weights), dtype, *isa);
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
