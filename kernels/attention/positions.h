// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "kernels/attention/attention.h"

// Position encodings. Tables are added to queries and keys before attention, rotary encodings
// rotate them, and ALiBi is part of a call's mask.
namespace attendant::attention {

inline constexpr float kDefaultBase = 10000;

// The time of the functions below, in the multiply-adds of Cost::operations that take as long: for
// a value of a table; for a value that a table is added to; for a pair of a token whose angle is
// computed, and for the same pair of each head, which is turned.
inline constexpr int64_t kSinusoidalOperations = 256;
inline constexpr int64_t kAddPositionOperations = 32;
inline constexpr int64_t kAngleOperations = 1024;
inline constexpr int64_t kTurnOperations = 64;

// table [positions, dim]: sin(p / base^(2i / dim)) in column 2i, cos of the same in column 2i + 1
// (Vaswani et al. 2017); an odd dim ends with a sine. REQUIRES: base is finite and above 0.
void FillSinusoidal(int64_t positions, int64_t dim, float base, float* table);

// One operand of attention, to be changed in place. A token stands at its place in its sequence, or
// where `positions` says: one for each token, packed [tokens], dense [batch * seq].
struct PositionedRows {
  Sequences sequences;
  DType dtype = DType::kF32;  // f32 or bf16
  OutputRows rows;
  std::span<const int32_t> positions{};  // empty: 0, 1, 2, ... in each sequence
};

// Adds row p of the table [positions, dim], sinusoidal or learned, to every head of a token at p.
// INVALID_ARGUMENT, before anything is changed, naming both numbers, when the widths differ or a
// position is outside the table.
absl::Status AddPositions(TensorView<const float, 2> table, const PositionedRows& operand,
                          ThreadPool& pool);

struct RotaryOptions {
  float base = kDefaultBase;
  int64_t dims = 0;  // how many of a head's dims are turned, from the first on; 0: all
  bool interleaved =
      false;  // pairs are (2i, 2i + 1), as in GPT-J; else (i, i + dims / 2), as in Llama
};

// Turns pair i of every head of a token at p by the angle p / base^(2i / dims) (Su et al. 2021).
// INVALID_ARGUMENT, before anything is changed, when dims are odd or more than a head has, the base
// is not finite and above 0, or positions do not fit.
absl::Status Rotate(const RotaryOptions& options, const PositionedRows& operand, ThreadPool& pool);

}  // namespace attendant::attention
