// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/strings/string_view.h"
#include "kernels/attention/attention.h"

namespace attendant::attention {

// A tensor that must come with a call of this kind. `shape` is for people: "[attention, query
// dim]".
struct ParameterInfo {
  const char* name;
  const char* shape;
  bool optional = false;
};

// All there is to say about a kind, once: the service, the client and the comparison list the kinds
// from here.
struct Operator {
  Kind kind;
  const char* name;     // "scaled_dot_product", on the wire and the command line
  const char* title;    // "scaled dot-product"
  const char* formula;  // "softmax(q k^T / sqrt(d)) v"
  const char* time;     // of n queries over n keys: "O(n^2 d)"
  const char* memory;   // beyond operands and outputs: "O(n)"
  const char* use;      // one sentence
  bool gives_weights;
  std::span<const ParameterInfo> parameters;

  // Makes the kind's own checks after CheckCall accepted the call, and computes the cost.
  absl::StatusOr<Cost> (*measure)(const Call& call, int threads);
  // REQUIRES: `measure` accepted the call; scratch has its size and alignment.
  absl::Status (*run)(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                      const Outputs& outputs);
  // REQUIRES: `measure` accepted the call.
  absl::Status (*reference)(const Call& call, const Outputs& outputs);
};

std::span<const Operator* const> Operators();          // in the order of Kind
const Operator* FindOperator(Kind kind);               // nullptr: no such kind
const Operator* FindOperator(absl::string_view name);  // nullptr: no such kind

// The rows of the table, each defined beside its kernels.
extern const Operator kDotProductOperator;
extern const Operator kMultiHeadOperator;
extern const Operator kFlashOperator;
extern const Operator kLocalOperator;
extern const Operator kStridedOperator;
extern const Operator kTransformerOperator;
extern const Operator kAdditiveOperator;
extern const Operator kLuongDotOperator;
extern const Operator kLuongGeneralOperator;
extern const Operator kLuongConcatOperator;
extern const Operator kLinearOperator;
extern const Operator kLinformerOperator;

}  // namespace attendant::attention
