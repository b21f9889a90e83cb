// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/attention/sequences.h"
#include "kernels/core/dtype.h"
#include "kernels/core/shape.h"
#include "kernels/core/threads/thread_pool.h"

namespace attendant::cpu {
struct IsaLevel;
}

// A call of any operator of the attention family; registry.h lists the operators.
// `queries` and `keys` count one sequence's query tokens and its key and value tokens.
namespace attendant::attention {

class Module;  // a loaded one with weights of its own: modules/module.h

// The instruction set that attention computes with, by its name: "auto" is the best of this machine
// (cpu/simd/cpu_isa.h has the names). A caller finds it once and passes it with every call and
// module; it lives as long as the process. `matmul`: who computes the matmuls of modules
// (cpu/simd/isa_level.h has the names). INVALID_ARGUMENT for another name of either, UNAVAILABLE
// when the machine lacks it.
absl::StatusOr<const cpu::IsaLevel*> FindIsa(absl::string_view name,
                                             absl::string_view matmul = "auto");

enum class Kind : uint8_t {
  kDotProduct,
  kMultiHead,
  kAdditive,
  kLuongDot,
  kLuongGeneral,
  kLuongConcat,
  kFlash,
  kLocal,
  kStrided,
  kLinear,
  kLinformer,
  kTransformer,
};

// An attention mask, [batch, heads, queries, keys]; each dim may be 1 and is then broadcast. Of
// packed sequences `queries` and `keys` are those of the longest.
//   kBool  uint8; 0 leaves the key out for that query
//   f32, bf16  added to the score; -inf leaves out. Every other number is a number: where all keys
//          have -1e9 the weights are those of equal scores, as PyTorch computes them.
struct MaskTensor {
  enum class Type : uint8_t { kBool, kF32, kBf16 };
  Type type = Type::kBool;
  const void* values = nullptr;
  std::array<int64_t, 4> dims{};  // all 0: no mask
  bool present() const { return dims != std::array<int64_t, 4>{}; }
};

// The attention mask. A query attends to the keys that no field leaves out. A query without such a
// key gets zeros for its output and its weights.
struct Mask {
  MaskTensor tensor;
  // 0 leaves the key out for every query (the inverse of PyTorch's key_padding_mask). One for each
  // key token: packed [tokens], dense [batch * seq]. Of size 0: none is left out.
  TensorView<const uint8_t, 1> keys;
  bool causal = false;  // query i attends to keys j <= i, also where their numbers differ
  int64_t window = -1;  // to keys with |i - j| <= window; -1: any distance
  // ALiBi: -alibi_slopes[head] * |i - j| is added to the score. One for each head; empty: none.
  std::span<const float> alibi_slopes{};
};

// Linear attention maps each value of queries and keys with: elu(x) + 1, or max(x, 0).
enum class FeatureMap : uint8_t { kEluPlusOne, kRelu };

enum class WeightsWanted : uint8_t { kNone, kPerHead, kAveraged };  // kAveraged: over the heads

// A trained tensor that a kind takes with the call, f32; a vector is [1, n].
struct Parameter {
  absl::string_view name;
  TensorView<const float, 2> values;
};

struct Call {
  Kind kind = Kind::kDotProduct;
  DType dtype = DType::kF32;  // of query, key, value and out: f32 or bf16. Sums are f32.
  Sequences queries{};
  Sequences keys{};   // of key and value
  InputRows query{};  // [heads, queries, query dim] for each sequence
  InputRows key{};    // [heads, keys, key dim]
  InputRows value{};  // [heads, keys, value dim]
  Mask mask{};
  WeightsWanted need_weights = WeightsWanted::kNone;
  std::optional<float> scale{};  // of the scores; default 1 / sqrt(query dim). Finite.
  int64_t block = 0;             // kStrided's; 0: the root of each sequence's keys, rounded up
  FeatureMap feature_map = FeatureMap::kEluPlusOne;  // kLinear's
  std::span<const Parameter> parameters{};
  const Module* module = nullptr;  // kMultiHead's and kTransformer's, which bring their own `isa`
  const cpu::IsaLevel* isa = nullptr;  // the kernels that compute it, of FindIsa
};

// The results of a call. The memory is the caller's, and overlaps no operand.
struct Outputs {
  OutputRows out;  // [heads, queries, out dim] for each sequence, of the call's dtype
  // Sequence after sequence, [heads or 1, queries, keys] each; so [batch, heads or 1, queries,
  // keys] of dense ones. Linformer's keys are the projected ones. Null when not wanted.
  float* attention_weights = nullptr;
};

// The time of a call is counted in operations: one is a multiply-add of attention in f32 with heads
// of 64. Two Zen 4 cores take 0.0096 ns for one, one thread of a Xeon with AVX-512 0.013 ns. All
// other work counts as many operations as take its time (operation_bench of tests/bench).
//
// Maximum, exponential and sum of one score.
inline constexpr int64_t kSoftmaxOperations = 32;

// The cost of a call, known before anything is allocated.
struct Cost {
  int64_t out_heads = 0;  // the shape of a row of `out`
  int64_t out_dim = 0;
  int64_t out_bytes = 0;      // all queries' rows
  int64_t weights_heads = 0;  // 0 when not wanted, 1 when averaged
  int64_t weights_bytes = 0;
  int64_t scratch_bytes = 0;
  int64_t operations = 0;
};

// Checks all that the call says and computes its cost; reads no values, so their pointers may still
// be null. INVALID_ARGUMENT names what disagrees, with both shapes or numbers, and what overflows;
// UNIMPLEMENTED for options that the kind does not have; UNAVAILABLE without `isa`.
absl::StatusOr<Cost> Measure(const Call& call, int threads);

inline constexpr size_t kScratchAlignment = 64;

// Runs the operator. `scratch` is aligned to kScratchAlignment and has at least the scratch_bytes
// that Measure gives for pool.threads(). The call is measured again and refused like there;
// INTERNAL when a kernel fails. Results of finite values are the same bits for every number of
// threads, and whatever the other sequences of the batch are. A value that is not finite may affect
// other rows of its own sequence, also rows that do not attend to its key. Which rows depends on
// the batch and on the number of threads.
absl::Status Run(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                 const Outputs& outputs);

// Like Run, without measuring again. REQUIRES: `cost` is what Measure gave for this call, for
// pool.threads() or more threads.
absl::Status RunMeasured(const Call& call, const Cost& cost, ThreadPool& pool,
                         std::span<std::byte> scratch, const Outputs& outputs);

// Like Run, by plain loops with sums in double.
absl::Status RunReference(const Call& call, const Outputs& outputs);

}  // namespace attendant::attention
