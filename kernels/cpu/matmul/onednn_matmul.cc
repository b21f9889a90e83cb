// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul/onednn_matmul.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#if ATTENDANT_ONEDNN_OPENMP
#include <omp.h>
#endif

#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/by_dtype.h"

namespace attendant::cpu {
namespace {

using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

struct Types {
  Type x, weight, y;
};

Types TypesOf(DType dtype) {
  return ByDType<Types>(dtype, {Type::f32, Type::f32, Type::f32},
                        {Type::bf16, Type::bf16, Type::f32}, {Type::u8, Type::s8, Type::s32});
}

dnnl::primitive_attr Attributes() {
  dnnl::primitive_attr attributes;
  // oneDNN's own scratchpad belongs to the thread that made the primitive; these primitives are
  // shared by threads.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::matmul::primitive_desc Describe(const dnnl::engine& engine, const Matmul::Options& options,
                                      int64_t rows, const dnnl::memory::desc& weight) {
  const Types types = TypesOf(options.dtype);
  const dnnl::memory::desc x({rows, options.k}, types.x, Tag::ab);
  const dnnl::memory::desc y({rows, options.n},
                             options.output == MatmulOutput::kBf16 ? Type::bf16 : types.y,
                             {options.y_columns == 0 ? options.n : options.y_columns, 1});
  if (!options.bias) return dnnl::matmul::primitive_desc(engine, x, weight, y, Attributes());
  const dnnl::memory::desc bias({1, options.n}, Type::f32, Tag::ab);
  return dnnl::matmul::primitive_desc(engine, x, weight, bias, y, Attributes());
}

bool Begins(const dnnl::matmul::primitive_desc& desc, std::string_view name) {
  return std::string_view(desc.impl_info_str()).substr(0, name.size()) == name;
}

// oneDNN's first choice for f32 on plain AVX2. A row's bits depend on its place among many rows
// there, but, for most k, not among 16: so one call gets 16. (Its brg_matmul:avx2 comes second and
// takes no layout but the one that it chooses for each m by itself.)
bool IsAvx2Gemm(const dnnl::matmul::primitive_desc& desc) { return Begins(desc, "gemm:jit:f32"); }

// k as oneDNN gets it. On AMX in bf16, where k does not fill a tile's 64 bytes, oneDNN (3.7.2; its
// issue 5717) reads on into the next row and multiplies that by 0: a row that is not finite would
// spoil the row before it. There x is copied, with zeros behind its rows.
int64_t DepthFor(const dnnl::matmul::primitive_desc& desc, const Matmul::Options& options) {
  constexpr int64_t kTileValues = 32;
  const bool amx = std::string_view(desc.impl_info_str()).find("amx") != std::string_view::npos;
  return amx && options.dtype == DType::kBf16 ? RoundUp(options.k, kTileValues) : options.k;
}

Matmul::Options WithDepth(Matmul::Options options, int64_t depth) {
  options.k = depth;
  return options;
}

// Makes oneDNN compute with the calling thread alone, where it was built with OpenMP: the thread
// pool is Attendant's. It holds for the calling thread, for good, and costs nothing beside a
// matmul.
void UseOneThread() {
#if ATTENDANT_ONEDNN_OPENMP
  omp_set_num_threads(1);
#endif
}

dnnl::cpu_isa OneDnnIsa(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx2:
      return dnnl::cpu_isa::avx2;
    case CpuIsa::kAvx2Vnni:
      return dnnl::cpu_isa::avx2_vnni;
    case CpuIsa::kAvx512:
      return dnnl::cpu_isa::avx512_core;
    case CpuIsa::kAvx512Vnni:
      return dnnl::cpu_isa::avx512_core_vnni;
    case CpuIsa::kAvx512Bf16:
      return dnnl::cpu_isa::avx512_core_bf16;
    case CpuIsa::kAmx:
      return dnnl::cpu_isa::avx512_core_amx;
    case CpuIsa::kAuto:
      break;
  }
  return dnnl::cpu_isa::isa_default;
}

}  // namespace

absl::Status LimitOneDnn(CpuIsa isa) {
  if (isa == CpuIsa::kAuto) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(ChooseCpuIsa(isa, ReadCpuIdWords()).status());
  // It fails once oneDNN was asked for its level, which the next line does.
  dnnl::set_max_cpu_isa(OneDnnIsa(isa));
  if (dnnl::get_effective_cpu_isa() == OneDnnIsa(isa)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "oneDNN cannot be held down to ", CpuIsaName(isa),
      ": this process has computed already, or has held oneDNN down to another instruction set"));
}

absl::StatusOr<std::unique_ptr<Matmul>> OneDnnMatmul::Create(const Options& options) {
  ATTENDANT_CHECK(options.output == MatmulOutput::kSums ||
                  (options.output == MatmulOutput::kBf16 && options.dtype == DType::kBf16));
  ATTENDANT_CHECK(options.dtype != DType::kInt8 || !options.bias);
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    // The largest m chooses the packed layout; the others are created for that layout.
    const auto describe = [&](int64_t depth) {
      const dnnl::memory::desc any({depth, options.n}, TypesOf(options.dtype).weight, Tag::any);
      return Describe(engine, WithDepth(options, depth), RoundUpRows(options.max_rows), any);
    };
    const int64_t depth = DepthFor(describe(options.k), options);
    return Compile(engine, options, depth, describe(depth).weights_desc());
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) {
      return absl::UnimplementedError(
          absl::StrCat("oneDNN has no ", DTypeName(options.dtype), " matmul on this machine"));
    }
    return absl::InternalError(absl::StrCat("oneDNN cannot create the matmul for k ", options.k,
                                            ", n ", options.n, ": ", error.what()));
  }
}

// Few primitives exist, for row counts that are rounded up: oneDNN gives a row the same bits for
// every m above 1 (m = 1 with a large k is split along k, which changes the order of its sum).
absl::StatusOr<std::unique_ptr<Matmul>> OneDnnMatmul::Compile(const dnnl::engine& engine,
                                                              const Options& options, int64_t depth,
                                                              const dnnl::memory::desc& weight) {
  UseOneThread();
  std::unique_ptr<OneDnnMatmul> matmul(new OneDnnMatmul(engine, options, depth));
  const Options padded = WithDepth(options, depth);
  matmul->packed_bytes_ = static_cast<int64_t>(weight.get_size());
  const int64_t max_rows = RoundUpRows(options.max_rows);
  matmul->call_rows_ =
      IsAvx2Gemm(Describe(engine, padded, max_rows, weight)) ? kRowGranularity : max_rows;
  for (int64_t rows = kRowGranularity; rows <= matmul->call_rows_; rows += kRowGranularity) {
    const auto desc = Describe(engine, padded, rows, weight);
    if (!Begins(desc, "brg") && !IsAvx2Gemm(desc)) {
      return absl::UnimplementedError(absl::StrCat(
          "oneDNN has no fast ", DTypeName(options.dtype), " matmul on this machine for m ", rows,
          ", k ", options.k, ", n ", options.n, ": it offers ", desc.impl_info_str()));
    }
    matmul->scratchpad_bytes_ =
        std::max(matmul->scratchpad_bytes_, desc.scratchpad_desc().get_size());
    matmul->variants_.push_back({desc, dnnl::matmul(desc)});
  }
  if (depth != options.k) {
    matmul->padded_rows_at_ = RoundUp(static_cast<int64_t>(matmul->scratchpad_bytes_), 64);
    matmul->scratchpad_bytes_ = static_cast<size_t>(matmul->padded_rows_at_ + max_rows * depth * 2);
  }
  return matmul;
}

int64_t OneDnnMatmul::CountSlices(int64_t limit) const {
  // oneDNN packs blocks of columns, k inside: [n / block, k / ..., ..., block, ...].
  const dnnl::memory::desc desc = weight_desc();
  const std::vector<dnnl_dim_t> strides = desc.get_strides();
  int64_t block = 1;
  for (size_t i = 0; i < desc.get_inner_blks().size(); ++i) {
    if (desc.get_inner_idxs()[i] == 1) block *= desc.get_inner_blks()[i];
  }
  const bool columns_outermost = strides[1] >= strides[0];
  if (block == 1 || !columns_outermost || options().n % block != 0) return 1;
  const int64_t blocks = options().n / block;
  return LargestDivisor(blocks, limit);
}

absl::StatusOr<std::unique_ptr<Matmul>> OneDnnMatmul::CreateSlice(int64_t slices,
                                                                  int64_t max_rows) const {
  const Options slice = SliceOptions(slices, max_rows);
  try {
    return Compile(engine_, slice, depth_, weight_desc().submemory_desc({depth_, slice.n}, {0, 0}));
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN cannot create the matmul for ", slice.n, " of ",
                                            options().n, " columns: ", error.what()));
  }
}

void OneDnnMatmul::Pack(TensorView<const float, 2> weight, void* storage) const {
  ATTENDANT_CHECK(weight.dim(0) == options().n && weight.dim(1) == options().k);
  ATTENDANT_CHECK(options().dtype != DType::kInt8);
  if (depth_ == options().k) return PackValues(weight.data(), Type::f32, storage);
  std::vector<float> padded(static_cast<size_t>(options().n * depth_));
  for (int64_t i = 0; i < options().n; ++i) {
    std::copy_n(weight.row(i), options().k, padded.begin() + i * depth_);
  }
  PackValues(padded.data(), Type::f32, storage);
}

void OneDnnMatmul::Pack(TensorView<const int8_t, 2> weight, void* storage) const {
  ATTENDANT_CHECK(weight.dim(0) == options().n && weight.dim(1) == options().k);
  ATTENDANT_CHECK(options().dtype == DType::kInt8);
  PackValues(weight.data(), Type::s8, storage);
}

void OneDnnMatmul::PackValues(const void* values, Type type, void* storage) const {
  UseOneThread();
  // [n, k] row-major is [k, n] column-major. oneDNN takes a non-const pointer and only reads.
  dnnl::memory plain({{depth_, options().n}, type, Tag::ba}, engine_, const_cast<void*>(values));
  dnnl::memory packed(weight_desc(), engine_, storage);
  dnnl::stream stream(engine_);
  dnnl::reorder(plain, packed).execute(stream, plain, packed);
  stream.wait();
}

// Memory objects are made once and pointed at the operands.
class OneDnnMatmul::Executor final : public MatmulExecutor {
 public:
  Executor(const OneDnnMatmul& matmul, void* scratchpad)
      : matmul_(matmul),
        stream_(matmul.engine_),
        weight_(matmul.weight_desc(), matmul.engine_, DNNL_MEMORY_NONE),
        padded_rows_(reinterpret_cast<uint16_t*>(static_cast<std::byte*>(scratchpad) +
                                                 matmul.padded_rows_at_)) {
    const dnnl::engine& engine = matmul.engine_;
    for (const Variant& variant : matmul.variants_) {
      Operands operands;
      operands.x = dnnl::memory(variant.desc.src_desc(), engine, DNNL_MEMORY_NONE);
      operands.y = dnnl::memory(variant.desc.dst_desc(), engine, DNNL_MEMORY_NONE);
      if (matmul.options().bias) {
        operands.bias = dnnl::memory(variant.desc.bias_desc(), engine, DNNL_MEMORY_NONE);
      }
      operands.scratchpad = dnnl::memory(variant.desc.scratchpad_desc(), engine, scratchpad);
      operands_.push_back(std::move(operands));
    }
  }

  bool Run(int64_t rows, const void* x, const void* packed_weight, const MatmulTerms& terms,
           void* y) override {
    if (rows == 0) return true;
    UseOneThread();
    const float* bias = terms.bias;
    if (matmul_.depth_ != matmul_.options().k) x = PadRows(rows, x);
    rows = RoundUpRows(rows);
    const int64_t call_rows = matmul_.call_rows_;
    if (rows <= call_rows) return RunCall(rows, x, packed_weight, bias, y);
    // Only f32 comes here, see IsAvx2Gemm.
    const Options& options = matmul_.options();
    bool ok = true;
    for (int64_t row = 0; row < rows; row += call_rows) {
      ok &= RunCall(call_rows, static_cast<const float*>(x) + row * options.k, packed_weight, bias,
                    static_cast<std::byte*>(y) + row * options.y_row_bytes());
    }
    return ok;
  }

 private:
  struct Operands {
    dnnl::memory x, y, bias, scratchpad;
  };

  // x in bf16 with zeros behind its rows.
  const void* PadRows(int64_t rows, const void* x) {
    const auto* from = static_cast<const uint16_t*>(x);
    uint16_t* to = padded_rows_;
    for (int64_t row = 0; row < rows; ++row, from += matmul_.options().k, to += matmul_.depth_) {
      std::fill_n(std::copy_n(from, matmul_.options().k, to), matmul_.depth_ - matmul_.options().k,
                  uint16_t{0});
    }
    return padded_rows_;
  }

  bool RunCall(int64_t rows, const void* x, const void* packed_weight, const float* bias, void* y) {
    const auto index = static_cast<size_t>(rows / kRowGranularity - 1);
    const Operands& operands = operands_[index];
    // The C calls: they take arguments from the stack, where the C++ ones build a map, and do not
    // throw.
    dnnl_memory_set_data_handle(operands.x.get(), const_cast<void*>(x));
    dnnl_memory_set_data_handle(operands.y.get(), y);
    dnnl_memory_set_data_handle(weight_.get(), const_cast<void*>(packed_weight));
    std::array<dnnl_exec_arg_t, 5> arguments{{{DNNL_ARG_SRC, operands.x.get()},
                                              {DNNL_ARG_WEIGHTS, weight_.get()},
                                              {DNNL_ARG_DST, operands.y.get()},
                                              {DNNL_ARG_SCRATCHPAD, operands.scratchpad.get()}}};
    int count = 4;
    if (bias != nullptr) {
      dnnl_memory_set_data_handle(operands.bias.get(), const_cast<float*>(bias));
      arguments[static_cast<size_t>(count++)] = {DNNL_ARG_BIAS, operands.bias.get()};
    }
    return dnnl_primitive_execute(matmul_.variants_[index].primitive.get(), stream_.get(), count,
                                  arguments.data()) == dnnl_success;
  }

  const OneDnnMatmul& matmul_;
  dnnl::stream stream_;
  dnnl::memory weight_;
  uint16_t* const padded_rows_;     // [rounded-up max rows, depth], where x is padded
  std::vector<Operands> operands_;  // ascending m
};

std::unique_ptr<MatmulExecutor> OneDnnMatmul::NewExecutor(void* scratchpad) const {
  return std::make_unique<Executor>(*this, scratchpad);
}

}  // namespace attendant::cpu
