// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/exact/mask_args.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "kernels/attention/check_call.h"
#include "kernels/attention/mask.h"
#include "kernels/core/base/int_math.h"

namespace attendant::attention {
namespace {

// A multiple of every kernel's vectors.
constexpr int64_t kKeysAtATime = 64;

enum class Form {
  kNone,      // windows alone
  kOneRow,    // the same keys for every query: [keys] in the buffer
  kTensor,    // the mask tensor where it lies; a key mask beside it
  kDistance,  // ALiBi: a value for each key - query in the buffer; a key mask beside it
  kRows,      // everything else: [queries, keys] in the buffer
};

bool HasKeyMask(const Call& call) { return call.mask.keys.dim(0) != 0; }

Form FormOf(const Call& call) {
  const MaskTensor& tensor = call.mask.tensor;
  const bool alibi = !call.mask.alibi_slopes.empty();
  const bool by_query = tensor.present() && tensor.dims[2] != 1;
  if (alibi) return tensor.present() ? Form::kRows : Form::kDistance;
  if (!by_query) return tensor.present() || HasKeyMask(call) ? Form::kOneRow : Form::kNone;
  const bool in_rows = tensor.dims[3] == call.keys.max_len();
  return in_rows && tensor.type != MaskTensor::Type::kBf16 ? Form::kTensor : Form::kRows;
}

// `values` such that index 0 of the result is `offset` before it. Only elements of the buffer are
// ever read; the address of the others is no pointer, so it is computed as a number.
const float* Before(const float* values, int64_t offset) {
  return reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(values) -
                                        static_cast<uintptr_t>(offset) * sizeof(float));
}

const uint8_t* KeyMask(const Call& call, int64_t sequence) {
  return HasKeyMask(call) ? call.mask.keys.data() + call.keys.start(sequence) : nullptr;
}

void CutKeys(int64_t begin, int64_t end, DType dtype, cpu::AttentionArgs& args) {
  const int64_t bytes = ValueBytes(dtype);
  args.k = static_cast<const std::byte*>(args.k) + begin * args.k_stride * bytes;
  if (args.v != nullptr) {
    args.v = static_cast<const std::byte*>(args.v) + begin * args.v_stride * bytes;
  }
  args.keys = end - begin;
  if (args.bias != nullptr) args.bias += begin;
  if (args.allowed != nullptr) args.allowed += begin;
}

// Cuts the keys at both ends that no query sees, as `left_out(key)` says: they cost nothing then.
template <typename LeftOut>
void Trim(const Call& call, LeftOut left_out, cpu::AttentionArgs& args) {
  int64_t begin = 0;
  int64_t end = args.keys;
  while (end > 0 && left_out(end - 1)) --end;
  // Where queries face keys by their number, the first key must stay the first.
  const bool by_number =
      call.mask.causal || call.mask.window >= 0 || !call.mask.alibi_slopes.empty();
  while (!by_number && begin < end && left_out(begin)) ++begin;
  CutKeys(begin, end, call.dtype, args);
}

void ApplyOneRow(const Call& call, const MaskReader& reader, bool trim, float* buffer,
                 cpu::AttentionArgs& args) {
  const float left_out = -std::numeric_limits<float>::infinity();
  reader.KeyBiases(0, 0, args.keys, buffer);
  args.bias = buffer;
  args.bias_stride = 0;
  if (trim)
    Trim(
        call, [&](int64_t key) { return buffer[key] == left_out; }, args);
  const auto is_zero = [](float bias) { return bias == 0; };
  if (std::all_of(args.bias, args.bias + args.keys, is_zero)) args.bias = nullptr;
}

void ApplyTensor(const Call& call, int64_t sequence, const MaskReader& reader, bool trim,
                 float* buffer, cpu::AttentionArgs& args) {
  const uint8_t* key_mask = KeyMask(call, sequence);
  if (call.mask.tensor.type == MaskTensor::Type::kBool) {
    args.allowed = static_cast<const uint8_t*>(call.mask.tensor.values) + reader.first();
    args.allowed_stride = call.mask.tensor.dims[3];
    if (key_mask == nullptr) return;
    const float left_out = -std::numeric_limits<float>::infinity();
    for (int64_t key = 0; key < args.keys; ++key) buffer[key] = key_mask[key] != 0 ? 0 : left_out;
    args.bias = buffer;
    args.bias_stride = 0;
  } else {
    args.bias = static_cast<const float*>(call.mask.tensor.values) + reader.first();
    args.bias_stride = call.mask.tensor.dims[3];
    args.allowed = key_mask;
    args.allowed_stride = 0;
  }
  if (trim && key_mask != nullptr) {
    Trim(
        call, [&](int64_t key) { return key_mask[key] == 0; }, args);
  }
}

void ApplyDistance(const Call& call, int64_t sequence, int64_t head, bool trim, float* buffer,
                   cpu::AttentionArgs& args) {
  const float slope = call.mask.alibi_slopes[static_cast<size_t>(head)];
  const int64_t first = -(args.query_end - 1);  // key - query of buffer[0]
  const int64_t count = args.keys + args.query_end - args.query_begin;
  for (int64_t i = 0; i < count; ++i) {
    buffer[i] = -slope * static_cast<float>(std::abs(first + i));
  }
  args.bias = Before(buffer, first);
  args.bias_stride = -1;
  args.allowed = KeyMask(call, sequence);
  args.allowed_stride = 0;
  if (trim && args.allowed != nullptr) {
    const uint8_t* key_mask = args.allowed;
    Trim(
        call, [&](int64_t key) { return key_mask[key] == 0; }, args);
  }
}

// Of the keys that a window leaves to the piece, rounded to what the kernel reads at a time. The
// weights' kernel reads all keys.
void ApplyRows(const MaskReader& reader, bool trim, float* buffer, cpu::AttentionArgs& args) {
  int64_t begin = 0, end = args.keys;
  if (trim) {
    begin = reader.KeysBegin(args.query_begin) / kKeysAtATime * kKeysAtATime;
    end = std::min(RoundUp(reader.KeysEnd(args.query_end - 1), kKeysAtATime), args.keys);
  }
  const int64_t count = std::max<int64_t>(end - begin, 0);
  for (int64_t query = args.query_begin; query < args.query_end; ++query) {
    reader.KeyBiases(query, begin, count, buffer + (query - args.query_begin) * count);
  }
  args.bias = Before(buffer, args.query_begin * count + begin);
  args.bias_stride = count;
}

}  // namespace

int64_t MaskBufferFloats(const Call& call, int64_t queries) {
  const int64_t keys = call.keys.max_len();
  switch (FormOf(call)) {
    case Form::kNone:
      return 0;
    case Form::kOneRow:
    case Form::kTensor:
      return keys;
    case Form::kDistance:
      return keys + queries;
    case Form::kRows:
      return queries * keys;
  }
  return 0;
}

void AddMaskOperations(const Call& call, int64_t seen, Cost& cost) {
  const int64_t queries = std::min(call.queries.tokens(), seen);
  if (call.mask.window >= 0) AddOverhead(call, queries, 768, cost);
  switch (FormOf(call)) {
    case Form::kNone:
      return;
    case Form::kOneRow:
      return AddOverheads(call, seen, {.key = 192, .score = 12}, cost);
    case Form::kDistance:  // a value for each query too, also for those that see no key
      return AddOverheads(call, seen, {.query = 192, .key = 192, .score = 12}, cost);
    case Form::kTensor:
      return AddOverheads(call, seen, {.key = 64, .score = 48}, cost);
    case Form::kRows: {
      AddOverheads(call, seen, {.query = 1024, .score = 48}, cost);
      // A row has the keys that any query of its piece sees.
      const int64_t window = call.mask.window < 0 ? cpu::kAllKeys / 4 : call.mask.window;
      const int64_t row = std::min(
          call.keys.max_len(), 2 * std::min(window, call.keys.max_len()) + cpu::kMaxTaskQueries);
      AddOverhead(call, queries, 32 * row, cost);
    }
  }
}

void ApplyMask(const Call& call, int64_t sequence, int64_t head, bool trim, float* buffer,
               cpu::AttentionArgs& args) {
  if (call.mask.window >= 0) {
    args.keys_before = args.keys_after = std::min(call.mask.window, cpu::kAllKeys);
  }
  if (call.mask.causal) args.keys_after = 0;
  const MaskReader reader(call, sequence, head);
  switch (FormOf(call)) {
    case Form::kNone:
      return;
    case Form::kOneRow:
      return ApplyOneRow(call, reader, trim, buffer, args);
    case Form::kTensor:
      return ApplyTensor(call, sequence, reader, trim, buffer, args);
    case Form::kDistance:
      return ApplyDistance(call, sequence, head, trim, buffer, args);
    case Form::kRows:
      return ApplyRows(reader, trim, buffer, args);
  }
}

}  // namespace attendant::attention
