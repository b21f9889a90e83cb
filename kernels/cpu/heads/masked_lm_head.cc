// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/heads/masked_lm_head.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/heads/make_runner.h"
#include "kernels/cpu/heads/packed_token_head.h"
#include "kernels/cpu/heads/top_entries.h"
#include "kernels/cpu/simd/denormals.h"

namespace attendant::cpu {
namespace {

// Ids whose logits are made at once, for kHeadRows tokens: 256 KiB, which stay in the cache.
constexpr int64_t kSliceColumns = 512;
// Rows [vocab] that are kept at a time. The weights are read once for each such group.
constexpr int64_t kReducedBytes = int64_t{16} << 20;

// log(1 + relu(x)), perhaps twice.
float Activate(const SpladeOptions& splade, float x) {
  if (!(x > 0)) return 0;
  const float once = std::log1p(x);
  return splade.twice ? std::log1p(once) : once;
}

class MaskedLmHead final : public Head {
 public:
  MaskedLmHead(PackedTokenHead packed, const TokenHeadOptions& options)
      : packed_(std::move(packed)), options_(options) {}

  const PackedTokenHead& packed() const { return packed_; }
  const TokenHeadOptions& options() const { return options_; }
  int64_t vocab() const { return packed_.out().outputs(); }
  int64_t padded_vocab() const { return packed_.out().slices() * packed_.out().columns(); }

  bool Makes(TaskKind kind) const override {
    return (kind == TaskKind::kSparse && options_.splade) ||
           (kind == TaskKind::kFillMask && options_.mask_id);
  }

  ResultSize MaxResult(const TaskOptions& options,
                       std::span<const int32_t> token_ids) const override {
    const int64_t top = TopOf(options);
    if (options.kind == TaskKind::kSparse) return {.values = top};
    return {.values = top * std::count(token_ids.begin(), token_ids.end(), *options_.mask_id),
            .columns = top};
  }

  int64_t TopOf(const TaskOptions& options) const {
    const int64_t all = options.kind == TaskKind::kSparse ? vocab() : kDefaultPredictions;
    return std::min(options.top_k > 0 ? options.top_k : all, vocab());
  }

  absl::StatusOr<std::unique_ptr<HeadRunner>> NewRunner(const SessionLimits& limits,
                                                        int threads) const override;
  int64_t weight_bytes() const override { return packed_.bytes(); }

 private:
  const PackedTokenHead packed_;
  const TokenHeadOptions options_;
};

class MaskedLmRunner final : public HeadRunner {
 public:
  // Throws std::exception.
  MaskedLmRunner(const MaskedLmHead& head, const SessionLimits& limits, int threads)
      : head_(head),
        operand_rows_(RoundUpRows(limits.max_batch_tokens) + kRowGranularity),
        group_(std::max<int64_t>(1, kReducedBytes / ReducedRowBytes())),
        memory_(RoundUp(operand_rows_ * head.packed().operand_row_bytes(), Arena::kAlignment) +
                RoundUp(group_ * ReducedRowBytes(), Arena::kAlignment)),
        operand_(memory_.Allocate<std::byte>(operand_rows_ * head.packed().operand_row_bytes())),
        reduced_(memory_.Allocate2<float>(group_, head.padded_vocab())) {
    threads_.reserve(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) threads_.emplace_back(head.packed());
    entries_.resize(static_cast<size_t>(threads));
    for (std::vector<Entry>& entries : entries_) entries.reserve(static_cast<size_t>(head.vocab()));
    const auto tokens = static_cast<size_t>(limits.max_batch_tokens);
    units_.reserve(tokens);
    states_.reserve(tokens);
    unit_of_row_.reserve(tokens);
  }

  absl::Status Run(std::span<const HeadInput> inputs, ThreadPool& pool) override {
    const ScopedDenormalFlush flush;
    failed_ = false;
    MakeUnits(inputs);
    ReadStates(pool);
    const auto units = static_cast<int64_t>(units_.size());
    for (int64_t begin = 0; begin < units && !failed_; begin += group_) {
      const int64_t end = std::min(begin + group_, units);
      Project(begin, end, pool);
      pool.ParallelFor(end - begin, [&](int64_t index, int thread) {
        Finish(units_[static_cast<size_t>(begin + index)], reduced_.row(index),
               entries_[static_cast<size_t>(thread)]);
      });
      if (units_.front().sparse()) WriteSparse(begin, end, pool);
    }
    return failed_ ? absl::InternalError("a matmul of the language model's head failed")
                   : absl::OkStatus();
  }

  int64_t arena_bytes() const override {
    int64_t bytes = memory_.used_bytes();
    for (const PackedTokenHead::Thread& thread : threads_) {
      bytes += thread.arena_bytes() + head_.vocab() * static_cast<int64_t>(sizeof(Entry));
    }
    return bytes;
  }

 private:
  // Tokens whose logits become one row [vocab]: a sequence, or a mask token.
  struct Unit {
    const HeadInput* input;
    int64_t first_row;
    int64_t rows;
    int64_t result_offset;  // of a mask token
    bool sum;
    int64_t weights = 0;  // of a sequence, above zero in its row when it is finished

    bool sparse() const { return input->options->kind == TaskKind::kSparse; }
  };

  int64_t ReducedRowBytes() const {
    return head_.padded_vocab() * static_cast<int64_t>(sizeof(float));
  }

  void MakeUnits(std::span<const HeadInput> inputs) {
    units_.clear();
    states_.clear();
    unit_of_row_.clear();
    for (const HeadInput& input : inputs) {
      if (input.options->kind == TaskKind::kSparse) {
        AddUnit(input, 0, input.states.dim(0), 0);
      } else {
        AddMasks(input);
      }
    }
  }

  void AddMasks(const HeadInput& input) {
    const int64_t top = head_.TopOf(*input.options);
    int64_t offset = 0;
    for (size_t i = 0; i < input.token_ids.size(); ++i) {
      if (input.token_ids[i] != *head_.options().mask_id) continue;
      AddUnit(input, static_cast<int64_t>(i), 1, offset);
      input.result->tokens.push_back(static_cast<int32_t>(i));
      offset += top;
    }
    input.result->indices.resize(static_cast<size_t>(offset));
    input.result->values.resize(static_cast<size_t>(offset));
  }

  void AddUnit(const HeadInput& input, int64_t token, int64_t rows, int64_t result_offset) {
    const bool sparse = input.options->kind == TaskKind::kSparse;
    units_.push_back({.input = &input,
                      .first_row = static_cast<int64_t>(states_.size()),
                      .rows = rows,
                      .result_offset = result_offset,
                      .sum = sparse && head_.options().splade->sum});
    for (int64_t row = 0; row < rows; ++row) {
      states_.push_back(input.states.row(token + row));
      unit_of_row_.push_back(units_.size() - 1);
    }
  }

  void ReadStates(ThreadPool& pool) {
    const auto rows = static_cast<int64_t>(states_.size());
    pool.ParallelFor(CeilDivide(rows, kHeadRows), [&](int64_t index, int thread) {
      const ScopedDenormalFlush flush;
      const int64_t begin = index * kHeadRows;
      const std::span<const float* const> block = std::span(states_).subspan(
          static_cast<size_t>(begin), static_cast<size_t>(std::min(kHeadRows, rows - begin)));
      PackedTokenHead::Thread& state = threads_[static_cast<size_t>(thread)];
      if (!state.ReadStates(block, OperandAt(begin))) failed_ = true;
    });
  }

  std::byte* OperandAt(int64_t row) const {
    return operand_ + row * head_.packed().operand_row_bytes();
  }

  // The reduced rows of units [first, last).
  void Project(int64_t first, int64_t last, ThreadPool& pool) {
    const Unit& last_unit = units_[static_cast<size_t>(last - 1)];
    const int64_t begin = units_[static_cast<size_t>(first)].first_row;
    const int64_t end = last_unit.first_row + last_unit.rows;
    pool.ParallelFor(head_.packed().out().slices(), [&](int64_t slice, int thread) {
      const ScopedDenormalFlush flush;
      PackedTokenHead::Thread& state = threads_[static_cast<size_t>(thread)];
      for (int64_t unit = first; unit < last; ++unit) {
        const bool sum = units_[static_cast<size_t>(unit)].sum;
        std::fill_n(reduced_.row(unit - first) + slice * kSliceColumns, kSliceColumns,
                    sum ? 0.0f : -std::numeric_limits<float>::infinity());
      }
      for (int64_t row = begin; row < end; row += kHeadRows) {
        const int64_t rows = std::min(kHeadRows, end - row);
        if (!state.Project(slice, rows, OperandAt(row))) failed_ = true;
        for (int64_t i = 0; i < rows; ++i) {
          const size_t unit = unit_of_row_[static_cast<size_t>(row + i)];
          Reduce(units_[unit].sum, state.y() + i * kSliceColumns,
                 reduced_.row(static_cast<int64_t>(unit) - first) + slice * kSliceColumns);
        }
      }
    });
  }

  // In the order of a unit's tokens, [kSliceColumns] each.
  void Reduce(bool sum, const float* logits, float* reduced) const {
    if (!sum) {
      for (int64_t j = 0; j < kSliceColumns; ++j) reduced[j] = std::max(reduced[j], logits[j]);
      return;
    }
    const SpladeOptions& splade = *head_.options().splade;
    for (int64_t j = 0; j < kSliceColumns; ++j) reduced[j] += Activate(splade, logits[j]);
  }

  void Finish(Unit& unit, float* row, std::vector<Entry>& entries) const {
    const ScopedDenormalFlush flush;
    const int64_t top = head_.TopOf(*unit.input->options);
    if (unit.sparse()) return FinishSparse(unit, row, top, entries);
    FillEntries({row, static_cast<size_t>(head_.vocab())}, entries);
    KeepLargest(static_cast<size_t>(top), entries);
    std::sort(entries.begin(), entries.end(), Larger);
    HeadResult& result = *unit.input->result;
    double sum = 0;
    const float largest = entries.front().value;
    for (int64_t i = 0; i < head_.vocab(); ++i) sum += std::exp(row[i] - largest);
    for (size_t i = 0; i < entries.size(); ++i) {
      const size_t at = static_cast<size_t>(unit.result_offset) + i;
      result.indices[at] = entries[i].index;
      const float logit = entries[i].value;
      result.values[at] = unit.input->options->raw
                              ? logit
                              : static_cast<float>(double{std::exp(logit - largest)} / sum);
    }
  }

  // Leaves the weights in `row`, and zeros where there are none.
  void FinishSparse(Unit& unit, float* row, int64_t top, std::vector<Entry>& entries) const {
    const SpladeOptions& splade = *head_.options().splade;
    entries.clear();
    for (int64_t i = 0; i < head_.vocab(); ++i) {
      const float weight = unit.sum ? row[i] : Activate(splade, row[i]);
      if (weight > 0) entries.push_back({static_cast<int32_t>(i), weight});
    }
    KeepLargest(static_cast<size_t>(top), entries);
    std::fill_n(row, head_.vocab(), 0.0f);
    for (const Entry& entry : entries) row[entry.index] = entry.value;
    unit.weights = static_cast<int64_t>(entries.size());
  }

  // The results of units [first, last), which are finished. Their memory is allocated by the
  // calling thread: where it runs out, nothing catches what is thrown on others.
  void WriteSparse(int64_t first, int64_t last, ThreadPool& pool) {
    for (int64_t i = first; i < last; ++i) {
      const Unit& unit = units_[static_cast<size_t>(i)];
      unit.input->result->indices.resize(static_cast<size_t>(unit.weights));
      unit.input->result->values.resize(static_cast<size_t>(unit.weights));
    }
    pool.ParallelFor(last - first, [&](int64_t index, int) {
      HeadResult& result = *units_[static_cast<size_t>(first + index)].input->result;
      const float* row = reduced_.row(index);
      size_t next = 0;
      for (int64_t i = 0; next < result.values.size(); ++i) {
        if (!(row[i] > 0)) continue;
        result.indices[next] = static_cast<int32_t>(i);
        result.values[next++] = row[i];
      }
    });
  }

  const MaskedLmHead& head_;
  const int64_t operand_rows_, group_;
  Arena memory_;
  // Of all the batch's rows. A group begins at any of them, and matmuls may read up to a granule
  // behind its last one.
  std::byte* const operand_;
  const TensorView<float, 2> reduced_;  // [group_, padded vocab]
  std::vector<PackedTokenHead::Thread> threads_;
  std::vector<std::vector<Entry>> entries_;  // [threads]
  std::atomic<bool> failed_{false};

  // Of the running call.
  std::vector<Unit> units_;
  std::vector<const float*> states_;  // [rows]
  std::vector<size_t> unit_of_row_;   // [rows]
};

absl::StatusOr<std::unique_ptr<HeadRunner>> MaskedLmHead::NewRunner(const SessionLimits& limits,
                                                                    int threads) const {
  return MakeRunner<MaskedLmRunner>(*this, limits, threads);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Head>> MakeMaskedLmHead(const HeadCompute& compute,
                                                       const TokenHead& head) {
  ATTENDANT_ASSIGN_OR_RETURN(PackedTokenHead packed,
                             PackedTokenHead::Create(compute, head, kSliceColumns));
  return std::make_unique<MaskedLmHead>(std::move(packed), head.options);
}

}  // namespace attendant::cpu
