// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/positions.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/attention/check_call.h"
#include "kernels/attention/values.h"
#include "kernels/core/status_macros.h"

namespace attendant::attention {
namespace {

// Tokens that a thread takes at once.
constexpr int64_t kTokens = 64;

absl::Status CheckOperand(const PositionedRows& operand) {
  if (operand.dtype != DType::kF32 && operand.dtype != DType::kBf16) {
    return absl::UnimplementedError(
        absl::StrCat("positions are put on f32 or bf16, not on ", DTypeName(operand.dtype)));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckSequences("rows", operand.sequences));
  const auto given = static_cast<int64_t>(operand.positions.size());
  if (given != 0 && given != operand.sequences.tokens()) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", given, " positions for ",
                                                   operand.sequences.tokens(), " tokens"));
  }
  return absl::OkStatus();
}

// Every position in [0, limit).
absl::Status CheckPositions(const PositionedRows& operand, int64_t limit) {
  for (size_t i = 0; i < operand.positions.size(); ++i) {
    const int64_t position = operand.positions[i];
    if (position < 0 || position >= limit) {
      return absl::InvalidArgumentError(
          absl::StrCat("the position of token ", i, " is ", position, ", the table has ", limit));
    }
  }
  if (operand.positions.empty() && operand.sequences.max_len() > limit) {
    return absl::InvalidArgumentError(absl::StrCat("the longest sequence has ",
                                                   operand.sequences.max_len(),
                                                   " tokens, the table has ", limit, " positions"));
  }
  return absl::OkStatus();
}

bool ValidBase(float base) { return std::isfinite(base) && base > 0; }

// The sequence that a token of all sequences belongs to. REQUIRES: there is such a token.
int64_t SequenceOf(const Sequences& sequences, int64_t index) {
  if (!sequences.packed()) return index / sequences.seq();
  const std::span<const int64_t> starts = sequences.starts();
  return std::upper_bound(starts.begin(), starts.end(), index) - starts.begin() - 1;
}

// visit(sequence, token of the sequence, position, thread) for every token. In pieces of tokens and
// not of sequences, of which there may be many short ones beside a long one.
template <typename Visit>
void ForEachToken(const PositionedRows& operand, ThreadPool& pool, Visit visit) {
  const Sequences& sequences = operand.sequences;
  const int64_t tokens = sequences.tokens();
  pool.ParallelFor((tokens + kTokens - 1) / kTokens, [&](int64_t task, int thread) {
    const int64_t end = std::min((task + 1) * kTokens, tokens);
    int64_t sequence = SequenceOf(sequences, task * kTokens);
    for (int64_t index = task * kTokens; index < end; ++index) {
      while (index >= sequences.start(sequence) + sequences.len(sequence)) ++sequence;
      const int64_t token = index - sequences.start(sequence);
      const int64_t position =
          operand.positions.empty() ? token : operand.positions[static_cast<size_t>(index)];
      visit(sequence, token, position, thread);
    }
  });
}

}  // namespace

void FillSinusoidal(int64_t positions, int64_t dim, float base, float* table) {
  for (int64_t column = 0; column < dim; column += 2) {
    const double exponent = static_cast<double>(column) / static_cast<double>(dim);
    const double rate = std::pow(static_cast<double>(base), -exponent);
    const double rate_sine = std::sin(rate), rate_cosine = std::cos(rate);
    // An addition of angles errs by 1e-16: a million positions by less than f32 shows.
    double sine = 0, cosine = 1;
    for (int64_t p = 0; p < positions; ++p) {
      table[p * dim + column] = static_cast<float>(sine);
      if (column + 1 < dim) table[p * dim + column + 1] = static_cast<float>(cosine);
      const double next = sine * rate_cosine + cosine * rate_sine;
      cosine = cosine * rate_cosine - sine * rate_sine;
      sine = next;
    }
  }
}

absl::Status AddPositions(TensorView<const float, 2> table, const PositionedRows& operand,
                          ThreadPool& pool) {
  ATTENDANT_RETURN_IF_ERROR(CheckOperand(operand));
  ATTENDANT_RETURN_IF_ERROR(
      CheckEqual("the table", table.dim(1), "a row", operand.rows.dim, "dims"));
  ATTENDANT_RETURN_IF_ERROR(CheckPositions(operand, table.dim(0)));
  ForEachToken(operand, pool, [&](int64_t sequence, int64_t token, int64_t position, int) {
    const float* added = table.row(position);
    for (int64_t head = 0; head < operand.rows.heads; ++head) {
      std::byte* row = operand.rows.at(operand.sequences, operand.dtype, sequence, head, token);
      for (int64_t d = 0; d < operand.rows.dim; ++d) {
        WriteValue(row, operand.dtype, d, ReadValue(row, operand.dtype, d) + added[d]);
      }
    }
  });
  return absl::OkStatus();
}

absl::Status Rotate(const RotaryOptions& options, const PositionedRows& operand, ThreadPool& pool) {
  ATTENDANT_RETURN_IF_ERROR(CheckOperand(operand));
  const int64_t dims = options.dims == 0 ? operand.rows.dim : options.dims;
  if (dims < 2 || dims % 2 != 0 || dims > operand.rows.dim) {
    return absl::InvalidArgumentError(absl::StrCat("rotary positions turn pairs: ", dims, " of ",
                                                   operand.rows.dim,
                                                   " dims cannot be turned, an even number can"));
  }
  if (!ValidBase(options.base)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the rotary base is ", options.base, ", it must be finite and above 0"));
  }
  const int64_t pairs = dims / 2;
  const int64_t step = options.interleaved ? 2 : 1;
  const int64_t partner = options.interleaved ? 1 : pairs;
  std::vector<double> rates;
  for (int64_t i = 0; i < pairs; ++i) {
    rates.push_back(std::pow(static_cast<double>(options.base),
                             -2 * static_cast<double>(i) / static_cast<double>(dims)));
  }
  ForEachToken(operand, pool, [&](int64_t sequence, int64_t token, int64_t position, int) {
    for (int64_t i = 0; i < pairs; ++i) {
      // The angle in double: in float it is off by up to 1e-3 at position 16,384.
      const double angle = static_cast<double>(position) * rates[static_cast<size_t>(i)];
      const auto sine = static_cast<float>(std::sin(angle));
      const auto cosine = static_cast<float>(std::cos(angle));
      for (int64_t head = 0; head < operand.rows.heads; ++head) {
        std::byte* row = operand.rows.at(operand.sequences, operand.dtype, sequence, head, token);
        const float x = ReadValue(row, operand.dtype, i * step);
        const float y = ReadValue(row, operand.dtype, i * step + partner);
        WriteValue(row, operand.dtype, i * step, x * cosine - y * sine);
        WriteValue(row, operand.dtype, i * step + partner, y * cosine + x * sine);
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace attendant::attention
