// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <array>
#include <string_view>

#if ATTENDANT_ONEDNN_OPENMP
#include <omp.h>
#endif

#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"

namespace attendant::cpu {
namespace {

using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

struct Types {
  Type x, weight, y;
};

Types TypesOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {Type::f32, Type::f32, Type::f32};
    case DType::kBf16:
      return {Type::bf16, Type::bf16, Type::f32};
    case DType::kInt8:
      return {Type::u8, Type::s8, Type::s32};
  }
  ATTENDANT_CHECK(false);
}

dnnl::primitive_attr Attributes() {
  dnnl::primitive_attr attributes;
  // oneDNN's own scratchpad belongs to the thread that made the primitive; ours are shared by
  // threads.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::matmul::primitive_desc Describe(const dnnl::engine& engine, const Matmul::Options& options,
                                      int64_t rows, const dnnl::memory::desc& weight) {
  const Types types = TypesOf(options.dtype);
  const dnnl::memory::desc x({rows, options.k}, types.x, Tag::ab);
  const dnnl::memory::desc y({rows, options.n}, options.bf16_output ? Type::bf16 : types.y,
                             Tag::ab);
  if (!options.bias) return dnnl::matmul::primitive_desc(engine, x, weight, y, Attributes());
  const dnnl::memory::desc bias({1, options.n}, Type::f32, Tag::ab);
  return dnnl::matmul::primitive_desc(engine, x, weight, bias, y, Attributes());
}

}  // namespace

void UseOneThreadPerCall() {
#if ATTENDANT_ONEDNN_OPENMP
  omp_set_num_threads(1);
#endif
}

absl::StatusOr<Matmul> Matmul::Create(const dnnl::engine& engine, const Options& options) {
  UseOneThreadPerCall();
  try {
    Matmul matmul;
    matmul.options_ = options;
    matmul.engine_ = engine;
    // The largest m chooses the packed layout; the others are created for that layout.
    dnnl::memory::desc weight({options.k, options.n}, TypesOf(options.dtype).weight, Tag::any);
    weight = Describe(engine, options, RoundUpRows(options.max_rows), weight).weights_desc();
    for (int64_t rows = kRowGranularity; rows <= RoundUpRows(options.max_rows);
         rows += kRowGranularity) {
      const auto desc = Describe(engine, options, rows, weight);
      const std::string_view implementation = desc.impl_info_str();
      if (implementation.substr(0, 3) != "brg") {
        return absl::UnimplementedError(absl::StrCat(
            "oneDNN has no fast ", DTypeName(options.dtype), " matmul on this machine for m ", rows,
            ", k ", options.k, ", n ", options.n, ": it offers ", desc.impl_info_str()));
      }
      matmul.scratchpad_bytes_ =
          std::max(matmul.scratchpad_bytes_, desc.scratchpad_desc().get_size());
      matmul.variants_.push_back({desc, dnnl::matmul(desc)});
    }
    return matmul;
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN cannot create the matmul for k ", options.k,
                                            ", n ", options.n, ": ", error.what()));
  }
}

dnnl::memory Matmul::Pack(TensorView<const float, 2> weight, void* storage) const {
  ATTENDANT_CHECK(weight.dim(0) == options_.n && weight.dim(1) == options_.k);
  ATTENDANT_CHECK(options_.dtype != DType::kInt8);
  return PackValues(weight.data(), Type::f32, storage);
}

dnnl::memory Matmul::Pack(TensorView<const int8_t, 2> weight, void* storage) const {
  ATTENDANT_CHECK(weight.dim(0) == options_.n && weight.dim(1) == options_.k);
  ATTENDANT_CHECK(options_.dtype == DType::kInt8);
  return PackValues(weight.data(), Type::s8, storage);
}

dnnl::memory Matmul::PackValues(const void* values, Type type, void* storage) const {
  UseOneThreadPerCall();
  // [n, k] row-major is [k, n] column-major. oneDNN takes a non-const pointer and only reads.
  dnnl::memory plain({{options_.k, options_.n}, type, Tag::ba}, engine_, const_cast<void*>(values));
  dnnl::memory packed(variants_.front().desc.weights_desc(), engine_, storage);
  dnnl::stream stream(engine_);
  dnnl::reorder(plain, packed).execute(stream, plain, packed);
  stream.wait();
  return packed;
}

int64_t Matmul::packed_bytes() const {
  return static_cast<int64_t>(variants_.front().desc.weights_desc().get_size());
}

MatmulRunner::MatmulRunner(const Matmul& matmul, const dnnl::stream& stream, void* scratchpad)
    : matmul_(&matmul), stream_(stream) {
  const dnnl::engine& engine = matmul.engine_;
  for (const Matmul::Variant& variant : matmul.variants_) {
    Operands operands;
    operands.x = dnnl::memory(variant.desc.src_desc(), engine, DNNL_MEMORY_NONE);
    operands.y = dnnl::memory(variant.desc.dst_desc(), engine, DNNL_MEMORY_NONE);
    if (matmul.options_.bias) {
      operands.bias = dnnl::memory(variant.desc.bias_desc(), engine, DNNL_MEMORY_NONE);
    }
    operands.scratchpad = dnnl::memory(variant.desc.scratchpad_desc(), engine, scratchpad);
    operands_.push_back(std::move(operands));
  }
}

bool MatmulRunner::Run(int64_t rows, const void* x, const dnnl::memory& packed_weight,
                       const float* bias, void* y) {
  const Operands& operands = operands_[static_cast<size_t>(rows / kRowGranularity - 1)];
  // The C calls: they take arguments from the stack, where the C++ ones build a map, and do not
  // throw.
  dnnl_memory_set_data_handle(operands.x.get(), const_cast<void*>(x));
  dnnl_memory_set_data_handle(operands.y.get(), y);
  std::array<dnnl_exec_arg_t, 5> arguments{{{DNNL_ARG_SRC, operands.x.get()},
                                            {DNNL_ARG_WEIGHTS, packed_weight.get()},
                                            {DNNL_ARG_DST, operands.y.get()},
                                            {DNNL_ARG_SCRATCHPAD, operands.scratchpad.get()}}};
  int count = 4;
  if (bias != nullptr) {
    dnnl_memory_set_data_handle(operands.bias.get(), const_cast<float*>(bias));
    arguments[static_cast<size_t>(count++)] = {DNNL_ARG_BIAS, operands.bias.get()};
  }
  return dnnl_primitive_execute(matmul_->ForRows(rows).primitive.get(), stream_.get(), count,
                                arguments.data()) == dnnl_success;
}

}  // namespace attendant::cpu
