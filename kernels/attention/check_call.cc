// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/check_call.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/status_macros.h"

namespace attendant::attention {
namespace {

std::string ShapeText(std::initializer_list<int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ", "), "]");
}

absl::Status CheckRows(absl::string_view name, int64_t heads, int64_t dim,
                       const Sequences& sequences) {
  if (heads < 1 || dim < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", heads, " heads of ", dim, " dims, both must be at least 1"));
  }
  return CheckedProduct(absl::StrCat(name, " tokens, heads and dims"),
                        {sequences.tokens(), heads, dim})
      .status();
}

absl::Status CheckMaskTensor(const Call& call, int64_t score_heads) {
  const MaskTensor& tensor = call.mask.tensor;
  if (!tensor.present()) return absl::OkStatus();
  const std::array<int64_t, 4> full{call.queries.batch(), score_heads, call.queries.max_len(),
                                    call.keys.max_len()};
  for (size_t i = 0; i < full.size(); ++i) {
    if (tensor.dims[i] == full[i] || tensor.dims[i] == 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the mask is [", absl::StrJoin(tensor.dims, ", "),
                     "], which does not broadcast to the scores' [batch, heads, queries, keys] = [",
                     absl::StrJoin(full, ", "), "]"));
  }
  return CheckedProduct("mask elements",
                        {tensor.dims[0], tensor.dims[1], tensor.dims[2], tensor.dims[3]})
      .status();
}

absl::Status CheckMask(const Call& call, int64_t score_heads) {
  const int64_t key_mask = call.mask.keys.dim(0);
  if (key_mask != 0 && key_mask != call.keys.tokens()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the key mask has ", key_mask, " values for the keys' ", call.keys.tokens(), " tokens"));
  }
  if (call.mask.window < -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the window is ", call.mask.window, ", it must be -1 or at least 0"));
  }
  const auto slopes = static_cast<int64_t>(call.mask.alibi_slopes.size());
  if (slopes != 0 && slopes != score_heads) {
    return absl::InvalidArgumentError(
        absl::StrCat("ALiBi has ", slopes, " slopes for ", score_heads, " heads"));
  }
  for (const float slope : call.mask.alibi_slopes) {
    if (std::isfinite(slope)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ALiBi has the slope ", slope, ", it must be finite"));
  }
  return CheckMaskTensor(call, score_heads);
}

}  // namespace

absl::StatusOr<int64_t> CheckedProduct(absl::string_view what,
                                       std::initializer_list<int64_t> factors) {
  const bool zero = std::find(factors.begin(), factors.end(), 0) != factors.end();
  int64_t product = zero ? 0 : 1;
  for (int64_t factor : factors) {
    if (factor < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": ", ShapeText(factors), " has a negative size"));
    }
    if (zero) continue;
    if (product > kMaxElements / factor) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": the product of ", ShapeText(factors),
                                                     " is beyond the limit of ", kMaxElements));
    }
    product *= factor;
  }
  return product;
}

absl::Status CheckSequences(absl::string_view what, const Sequences& sequences) {
  if (sequences.batch() < 1 || sequences.batch() > kMaxElements) {
    return absl::InvalidArgumentError(absl::StrCat(what, " have ", sequences.batch(),
                                                   " sequences, they need at least 1 and at most ",
                                                   kMaxElements));
  }
  if (!sequences.packed()) {
    return CheckedProduct(absl::StrCat(what, " tokens"), {sequences.batch(), sequences.seq()})
        .status();
  }
  const std::span<const int64_t> starts = sequences.starts();
  if (starts.front() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": starts begin with ", starts.front(), ", they must begin with 0"));
  }
  for (size_t i = 1; i < starts.size(); ++i) {
    if (starts[i] < starts[i - 1] || starts[i] > kMaxElements) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": start ", i, " is ", starts[i], " after ", starts[i - 1],
                       ", starts must not fall nor pass ", kMaxElements));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEqual(absl::string_view a_name, int64_t a, absl::string_view b_name, int64_t b,
                        absl::string_view unit) {
  if (a == b) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(a_name, " has ", a, " ", unit, ", ", b_name, " has ", b));
}

absl::Status CheckCall(const Call& call, int64_t score_heads, bool gives_weights) {
  if (call.dtype != DType::kF32 && call.dtype != DType::kBf16) {
    return absl::UnimplementedError(
        absl::StrCat("attention computes in f32 or bf16, not in ", DTypeName(call.dtype)));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckSequences("queries", call.queries));
  ATTENDANT_RETURN_IF_ERROR(CheckSequences("keys", call.keys));
  ATTENDANT_RETURN_IF_ERROR(
      CheckEqual("query", call.queries.batch(), "key", call.keys.batch(), "sequences"));
  ATTENDANT_RETURN_IF_ERROR(CheckRows("query", call.query.heads, call.query.dim, call.queries));
  ATTENDANT_RETURN_IF_ERROR(CheckRows("key", call.key.heads, call.key.dim, call.keys));
  ATTENDANT_RETURN_IF_ERROR(CheckRows("value", call.value.heads, call.value.dim, call.keys));
  ATTENDANT_RETURN_IF_ERROR(CheckEqual("query", call.query.heads, "key", call.key.heads, "heads"));
  ATTENDANT_RETURN_IF_ERROR(CheckEqual("key", call.key.heads, "value", call.value.heads, "heads"));
  ATTENDANT_RETURN_IF_ERROR(CheckMask(call, score_heads));
  if (call.scale.has_value() && !std::isfinite(*call.scale)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the scale is ", *call.scale, ", it must be finite"));
  }
  if (call.need_weights != WeightsWanted::kNone && !gives_weights) {
    return absl::UnimplementedError(
        "this kind never has the weights; scaled_dot_product gives them");
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorView<const float, 2>> RequireParameter(const Call& call,
                                                            absl::string_view name, int64_t rows,
                                                            int64_t columns) {
  const auto text = [](int64_t dim) { return dim == -1 ? "any" : absl::StrCat(dim); };
  for (const Parameter& parameter : call.parameters) {
    if (parameter.name != name) continue;
    const int64_t r = parameter.values.dim(0), c = parameter.values.dim(1);
    if ((rows == -1 ? r >= 1 : r == rows) && (columns == -1 ? c >= 1 : c == columns)) {
      ATTENDANT_RETURN_IF_ERROR(CheckedProduct(name, {r, c}));
      return parameter.values;
    }
    return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' is ", ShapeText({r, c}),
                                                   ", expected [", text(rows), ", ", text(columns),
                                                   "]"));
  }
  return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' is missing, expected [",
                                                 text(rows), ", ", text(columns), "]"));
}

bool HasParameter(const Call& call, absl::string_view name) {
  return std::any_of(call.parameters.begin(), call.parameters.end(),
                     [name](const Parameter& parameter) { return parameter.name == name; });
}

absl::Status RefuseScale(const Call& call) {
  if (!call.scale.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the scale is ", *call.scale, ", this kind of attention has none"));
}

absl::Status AddOperations(std::initializer_list<std::initializer_list<int64_t>> products,
                           Cost& cost) {
  for (std::initializer_list<int64_t> factors : products) {
    ATTENDANT_ASSIGN_OR_RETURN(int64_t product, CheckedProduct("multiply-adds", factors));
    cost.operations += product;
  }
  return absl::OkStatus();
}

void AddOverhead(const Call& call, int64_t count, int64_t operations, Cost& cost) {
  cost.operations +=
      CheckedProduct("", {call.query.heads, count, operations}).value_or(kMaxElements);
}

void AddOverheads(const Call& call, int64_t scores, const Overheads& each, Cost& cost) {
  // A batch of 2^40 empty sequences takes no time.
  AddOverhead(call, std::min(call.queries.batch(), call.queries.tokens()), each.sequence, cost);
  AddOverhead(call, call.queries.tokens(), each.query, cost);
  AddOverhead(call, call.keys.tokens(), each.key, cost);
  AddOverhead(call, scores, each.score, cost);
}

int64_t SeenPairs(const Call& call) {
  const int64_t longest = call.keys.max_len();
  const int64_t window = call.mask.window < 0 ? longest : std::min(call.mask.window, longest);
  const int64_t widest = (call.mask.causal ? window : 2 * window) + 1;
  const auto pairs = [&](int64_t queries, int64_t keys) {
    const int64_t seeing = call.mask.window < 0 ? queries : std::min(queries, keys + window);
    const int64_t in_window = seeing * std::min(keys, widest);
    if (!call.mask.causal) return in_window;
    const int64_t corner = std::min(queries, keys);  // its queries see half of it
    return std::min(in_window, corner * (corner + 1) / 2 + (queries - corner) * keys);
  };
  if (!call.queries.packed() && !call.keys.packed()) {
    return call.queries.batch() * pairs(call.queries.seq(), call.keys.seq());
  }
  int64_t sum = 0;
  for (int64_t i = 0; i < call.queries.batch(); ++i) {
    sum += pairs(call.queries.len(i), call.keys.len(i));
  }
  return sum;
}

bool HasKeyBiases(const Call& call) {
  const Mask& mask = call.mask;
  return mask.tensor.present() || mask.keys.dim(0) != 0 || !mask.alibi_slopes.empty();
}

absl::StatusOr<int64_t> ScorePairs(const Call& call) {
  // Not sequence by sequence: a batch of 2^40 empty ones takes no bytes to say.
  if (!call.queries.packed() && !call.keys.packed()) {
    return CheckedProduct("sequences, queries and keys",
                          {call.queries.batch(), call.queries.seq(), call.keys.seq()});
  }
  int64_t pairs = 0;
  for (int64_t i = 0; i < call.queries.batch(); ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(
        int64_t product,
        CheckedProduct("queries and keys", {call.queries.len(i), call.keys.len(i)}));
    pairs += product;
    if (pairs > kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat("the scores of sequences 0 to ", i, " are ",
                                                     pairs, ", the limit is ", kMaxElements));
    }
  }
  return pairs;
}

absl::StatusOr<Cost> OutputCost(const Call& call, int64_t out_heads, int64_t out_dim,
                                int64_t score_heads) {
  Cost cost{.out_heads = out_heads, .out_dim = out_dim};
  ATTENDANT_ASSIGN_OR_RETURN(
      cost.out_bytes,
      CheckedProduct("output bytes of tokens, heads, dims and value",
                     {call.queries.tokens(), out_heads, out_dim, ValueBytes(call.dtype)}));
  if (call.need_weights == WeightsWanted::kNone) return cost;
  cost.weights_heads = call.need_weights == WeightsWanted::kPerHead ? score_heads : 1;
  ATTENDANT_ASSIGN_OR_RETURN(int64_t pairs, ScorePairs(call));
  ATTENDANT_ASSIGN_OR_RETURN(cost.weights_bytes,
                             CheckedProduct("weights' bytes of heads, pairs and value",
                                            {cost.weights_heads, pairs, int64_t{sizeof(float)}}));
  return cost;
}

int64_t WeightsOffset(const Call& call, int64_t weights_heads, int64_t sequence) {
  if (!call.queries.packed() && !call.keys.packed()) {
    return weights_heads * sequence * call.queries.seq() * call.keys.seq();
  }
  int64_t offset = 0;
  for (int64_t i = 0; i < sequence; ++i) {
    offset += weights_heads * call.queries.len(i) * call.keys.len(i);
  }
  return offset;
}

}  // namespace attendant::attention
