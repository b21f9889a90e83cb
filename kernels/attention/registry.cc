// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/registry.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/attention/check_call.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::attention {
namespace {

constexpr const Operator* kOperators[] = {
    &kDotProductOperator,    //
    &kMultiHeadOperator,     //
    &kAdditiveOperator,      //
    &kLuongDotOperator,      //
    &kLuongGeneralOperator,  //
    &kLuongConcatOperator,   //
    &kFlashOperator,         //
    &kLocalOperator,         //
    &kStridedOperator,       //
    &kLinearOperator,        //
    &kLinformerOperator,     //
    &kTransformerOperator,
};

absl::StatusOr<const Operator*> RequireOperator(Kind kind) {
  const Operator* found = FindOperator(kind);
  if (found != nullptr) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("there is no attention of kind ", static_cast<int>(kind)));
}

// Without queries there is no result. A batch of 2^48 sequences of none takes no bytes to say:
// no code may walk through it. REQUIRES: `measure` accepted the call.
bool NothingToDo(const Call& call) { return call.queries.tokens() == 0; }

absl::Status CheckScratch(std::span<std::byte> scratch, int64_t bytes) {
  const bool aligned = reinterpret_cast<uintptr_t>(scratch.data()) % kScratchAlignment == 0;
  if (static_cast<int64_t>(scratch.size()) >= bytes && (aligned || bytes == 0)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the scratch has ", scratch.size(), " bytes", aligned ? "" : ", not aligned",
                   "; the call needs ", bytes, " aligned to ", kScratchAlignment));
}

}  // namespace

std::span<const Operator* const> Operators() { return kOperators; }

const Operator* FindOperator(Kind kind) {
  for (const Operator* op : kOperators) {
    if (op->kind == kind) return op;
  }
  return nullptr;
}

const Operator* FindOperator(absl::string_view name) {
  for (const Operator* op : kOperators) {
    if (op->name == name) return op;
  }
  return nullptr;
}

absl::StatusOr<const cpu::IsaLevel*> FindIsa(absl::string_view name, absl::string_view matmul) {
  ATTENDANT_ASSIGN_OR_RETURN(const cpu::CpuIsa isa, cpu::ParseCpuIsa(name));
  ATTENDANT_ASSIGN_OR_RETURN(const cpu::MatmulChoice choice, cpu::ParseMatmulChoice(matmul));
  return cpu::FindIsaLevel(isa, choice);
}

absl::StatusOr<Cost> Measure(const Call& call, int threads) {
  ATTENDANT_ASSIGN_OR_RETURN(const Operator* op, RequireOperator(call.kind));
  const bool of_module = call.kind == Kind::kMultiHead || call.kind == Kind::kTransformer;
  if (call.isa == nullptr && !of_module) {
    return absl::UnavailableError("attention has no instruction set: it needs AVX2 and FMA");
  }
  absl::StatusOr<Cost> cost = op->measure(call, threads);
  if (cost.ok() && NothingToDo(call)) cost->scratch_bytes = 0;
  return cost;
}

absl::Status Run(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                 const Outputs& outputs) {
  ATTENDANT_ASSIGN_OR_RETURN(const Cost cost, Measure(call, pool.threads()));
  return RunMeasured(call, cost, pool, scratch, outputs);
}

absl::Status RunMeasured(const Call& call, const Cost& cost, ThreadPool& pool,
                         std::span<std::byte> scratch, const Outputs& outputs) {
  if (NothingToDo(call)) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(CheckScratch(scratch, cost.scratch_bytes));
  return FindOperator(call.kind)->run(call, pool, scratch, outputs);
}

absl::Status RunReference(const Call& call, const Outputs& outputs) {
  ATTENDANT_RETURN_IF_ERROR(Measure(call, 1));
  if (NothingToDo(call)) return absl::OkStatus();
  return FindOperator(call.kind)->reference(call, outputs);
}

}  // namespace attendant::attention
