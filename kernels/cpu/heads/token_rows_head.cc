// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/heads/token_rows_head.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/core/base/int_math.h"
#include "kernels/core/pooling.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/heads/make_runner.h"
#include "kernels/cpu/heads/packed_token_head.h"
#include "kernels/cpu/heads/top_entries.h"
#include "kernels/cpu/simd/denormals.h"
#include "kernels/heads/sequence_classifier.h"

namespace attendant::cpu {
namespace {

// The work of one of the three heads on its rows. Immutable, thread-safe.
class RowTask {
 public:
  virtual ~RowTask() = default;

  virtual TaskKind kind() const = 0;
  virtual Head::ResultSize MaxResult(const TaskOptions& options, int64_t outputs,
                                     std::span<const int32_t> token_ids) const = 0;
  // The first token that has a row.
  virtual int64_t first_token() const { return 0; }
  // `row` [outputs], in place.
  virtual void FinishRow(const TaskOptions& options, std::span<float> row) const = 0;
  // The result's values have all rows of the sequence, from its first_token() on. `entries` is
  // scratch with room for one of each token.
  virtual void FinishSequence(const HeadInput& input, std::vector<Entry>& entries) const = 0;
};

class TokenLabels final : public RowTask {
 public:
  TaskKind kind() const override { return TaskKind::kTokenScores; }
  Head::ResultSize MaxResult(const TaskOptions&, int64_t outputs,
                             std::span<const int32_t> token_ids) const override {
    return {.values = static_cast<int64_t>(token_ids.size()) * outputs, .columns = outputs};
  }
  void FinishRow(const TaskOptions& options, std::span<float> row) const override {
    if (!options.raw) ApplyActivation(ScoreActivation::kSoftmax, row);
  }
  void FinishSequence(const HeadInput&, std::vector<Entry>&) const override {}
};

class TokenWeights final : public RowTask {
 public:
  explicit TokenWeights(std::vector<int32_t> ignored) : ignored_(std::move(ignored)) {}

  TaskKind kind() const override { return TaskKind::kSparse; }
  Head::ResultSize MaxResult(const TaskOptions& options, int64_t,
                             std::span<const int32_t> token_ids) const override {
    const auto len = static_cast<int64_t>(token_ids.size());
    return {.values = options.top_k > 0 ? std::min(options.top_k, len) : len};
  }
  void FinishRow(const TaskOptions&, std::span<float> row) const override {
    row[0] = std::max(row[0], 0.0f);
  }
  void FinishSequence(const HeadInput& input, std::vector<Entry>& entries) const override {
    entries.clear();
    for (size_t i = 0; i < input.token_ids.size(); ++i) {
      const Entry entry{input.token_ids[i], input.result->values[i]};
      if (entry.value > 0 && !Ignored(entry.index)) entries.push_back(entry);
    }
    KeepLargestOfEach(entries);
    if (input.options->top_k > 0) KeepLargest(static_cast<size_t>(input.options->top_k), entries);
    WriteAscending(entries, *input.result);
  }

 private:
  bool Ignored(int32_t id) const {
    return std::binary_search(ignored_.begin(), ignored_.end(), id);
  }
  static void KeepLargestOfEach(std::vector<Entry>& entries) {
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return a.index != b.index ? a.index < b.index : a.value > b.value;
    });
    const auto same = [](const Entry& a, const Entry& b) { return a.index == b.index; };
    entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  }

  const std::vector<int32_t> ignored_;
};

class Vectors final : public RowTask {
 public:
  explicit Vectors(const TokenHeadOptions& options)
      : skip_first_(options.skip_first), ignored_(options.ignored_ids) {}

  TaskKind kind() const override { return TaskKind::kMultiVector; }
  int64_t first_token() const override { return skip_first_ ? 1 : 0; }
  Head::ResultSize MaxResult(const TaskOptions&, int64_t outputs,
                             std::span<const int32_t> token_ids) const override {
    return {.values = static_cast<int64_t>(token_ids.size()) * outputs, .columns = outputs};
  }
  void FinishRow(const TaskOptions&, std::span<float> row) const override { NormalizeL2(row); }
  void FinishSequence(const HeadInput& input, std::vector<Entry>&) const override {
    HeadResult& result = *input.result;
    const auto len = static_cast<int64_t>(input.token_ids.size());
    if (len <= first_token()) return;
    const int64_t outputs = static_cast<int64_t>(result.values.size()) / (len - first_token());
    float* kept = result.values.data();
    for (int64_t i = first_token(); i < len; ++i) {
      if (input.options->document && Ignored(input.token_ids[static_cast<size_t>(i)])) continue;
      const float* row = result.values.data() + (i - first_token()) * outputs;
      if (kept != row) std::copy_n(row, outputs, kept);
      kept += outputs;
      result.tokens.push_back(static_cast<int32_t>(i));
    }
    result.values.resize(static_cast<size_t>(kept - result.values.data()));
  }

 private:
  bool Ignored(int32_t id) const {
    return std::binary_search(ignored_.begin(), ignored_.end(), id);
  }

  const bool skip_first_;
  const std::vector<int32_t> ignored_;
};

class TokenRowsHead final : public Head {
 public:
  TokenRowsHead(PackedTokenHead packed, std::unique_ptr<RowTask> task)
      : packed_(std::move(packed)), task_(std::move(task)) {}

  const PackedTokenHead& packed() const { return packed_; }
  const RowTask& task() const { return *task_; }

  bool Makes(TaskKind kind) const override { return kind == task_->kind(); }
  ResultSize MaxResult(const TaskOptions& options,
                       std::span<const int32_t> token_ids) const override {
    return task_->MaxResult(options, packed_.out().outputs(), token_ids);
  }
  absl::StatusOr<std::unique_ptr<HeadRunner>> NewRunner(const SessionLimits& limits,
                                                        int threads) const override;
  int64_t weight_bytes() const override { return packed_.bytes(); }

 private:
  const PackedTokenHead packed_;
  const std::unique_ptr<RowTask> task_;
};

class TokenRowsRunner final : public HeadRunner {
 public:
  // Throws std::exception.
  TokenRowsRunner(const TokenRowsHead& head, const SessionLimits& limits, int threads)
      : head_(head) {
    threads_.reserve(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) threads_.emplace_back(head.packed());
    const auto tokens = static_cast<size_t>(limits.max_batch_tokens);
    rows_.reserve(tokens);
    states_.reserve(tokens);
    entries_.reserve(tokens);
  }

  absl::Status Run(std::span<const HeadInput> inputs, ThreadPool& pool) override {
    failed_ = false;
    MakeRows(inputs);
    const auto rows = static_cast<int64_t>(rows_.size());
    pool.ParallelFor(CeilDivide(rows, kHeadRows), [&](int64_t index, int thread) {
      const ScopedDenormalFlush flush;
      const int64_t begin = index * kHeadRows;
      RunBlock(begin, std::min(kHeadRows, rows - begin), threads_[static_cast<size_t>(thread)]);
    });
    if (failed_) return absl::InternalError("a matmul of a head failed");
    for (const HeadInput& input : inputs) head_.task().FinishSequence(input, entries_);
    return absl::OkStatus();
  }

  int64_t arena_bytes() const override {
    int64_t bytes = 0;
    for (const PackedTokenHead::Thread& thread : threads_) bytes += thread.arena_bytes();
    return bytes;
  }

 private:
  struct Row {
    const HeadInput* input;
    float* result;  // [outputs]
  };

  void MakeRows(std::span<const HeadInput> inputs) {
    rows_.clear();
    states_.clear();
    const int64_t outputs = head_.packed().out().outputs(), first = head_.task().first_token();
    for (const HeadInput& input : inputs) {
      const int64_t rows = std::max<int64_t>(0, input.states.dim(0) - first);
      input.result->values.resize(static_cast<size_t>(rows * outputs));
      for (int64_t i = 0; i < rows; ++i) {
        rows_.push_back({&input, input.result->values.data() + i * outputs});
        states_.push_back(input.states.row(first + i));
      }
    }
  }

  void RunBlock(int64_t begin, int64_t count, PackedTokenHead::Thread& thread) {
    const auto first = static_cast<size_t>(begin);
    const int64_t outputs = head_.packed().out().outputs();
    if (!thread.ReadStates(std::span(states_).subspan(first, static_cast<size_t>(count)),
                           thread.operand()) ||
        !thread.Project(0, count, thread.operand())) {
      failed_ = true;
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const Row& row = rows_[first + static_cast<size_t>(i)];
      std::copy_n(thread.y() + i * outputs, outputs, row.result);
      head_.task().FinishRow(*row.input->options, {row.result, static_cast<size_t>(outputs)});
    }
  }

  const TokenRowsHead& head_;
  std::vector<PackedTokenHead::Thread> threads_;
  std::atomic<bool> failed_{false};

  // Of the running call, [rows].
  std::vector<Row> rows_;
  std::vector<const float*> states_;
  std::vector<Entry> entries_;  // of one sequence
};

absl::StatusOr<std::unique_ptr<HeadRunner>> TokenRowsHead::NewRunner(const SessionLimits& limits,
                                                                     int threads) const {
  return MakeRunner<TokenRowsRunner>(*this, limits, threads);
}

absl::StatusOr<std::unique_ptr<Head>> Make(const HeadCompute& compute, const TokenHead& head,
                                           std::unique_ptr<RowTask> task) {
  ATTENDANT_ASSIGN_OR_RETURN(PackedTokenHead packed, PackedTokenHead::Create(compute, head));
  return std::make_unique<TokenRowsHead>(std::move(packed), std::move(task));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Head>> MakeTokenLabelsHead(const HeadCompute& compute,
                                                          const TokenHead& head) {
  return Make(compute, head, std::make_unique<TokenLabels>());
}

absl::StatusOr<std::unique_ptr<Head>> MakeTokenWeightsHead(const HeadCompute& compute,
                                                           const TokenHead& head) {
  return Make(compute, head, std::make_unique<TokenWeights>(head.options.ignored_ids));
}

absl::StatusOr<std::unique_ptr<Head>> MakeVectorsHead(const HeadCompute& compute,
                                                      const TokenHead& head) {
  return Make(compute, head, std::make_unique<Vectors>(head.options));
}

}  // namespace attendant::cpu
