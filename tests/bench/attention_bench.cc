// SPDX-License-Identifier: Apache-2.0
// Times attention on shapes that peers/attention.py asks for, line by line. Operands are
// [batch, heads, seq, head_dim], as PyTorch's scaled_dot_product_attention takes them; of
// multi_head [batch, seq, HEADS * HEAD_DIM], with projections of random weights.
//
//   LEVEL DTYPE THREADS HEADS HEAD_DIM SEQ MASK SECONDS LEN ...   {"seconds": median of a call}
//
// LEVEL is kernel (kernels/cpu, cut into tasks here) or the name of an operator (kernels/attention,
// as it is served; of known lengths it takes packed operands, [tokens, heads, head_dim]). One
// sequence of SEQ rows for each LEN, of which LEN are real. MASK says what is known of that:
//   none      nothing: all rows attend to all rows
//   causal    likewise, to rows up to themselves
//   padding   a byte for each key, LEN of them 1: all rows attend to those
//   lengths   the lengths: real rows attend to real rows, the others are not touched
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/registry.h"
#include "kernels/core/arena.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/cpu/attention/flash_attention.h"
#include "kernels/cpu/simd/denormals.h"
#include "tests/bench/attention/compare_case.h"
#include "tests/bench/timing.h"

namespace attendant::bench {
namespace {

struct Question {
  std::string level, dtype;
  int threads = 0;
  int64_t heads = 0, head_dim = 0, seq = 0;
  std::string mask;
  double seconds = 0;
  std::vector<int64_t> lens;
};

// One head of one sequence, some of its queries.
struct Task {
  size_t sequence;
  int64_t head, query_begin, query_end, keys;
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual double Seconds() = 0;  // median of a call
};

class KernelWorkload final : public Workload {
 public:
  explicit KernelWorkload(const Question& question);
  double Seconds() override;

 private:
  cpu::AttentionArgs ArgsOf(const Task& task, int thread);
  int64_t ValueBytes() const { return question_.dtype == "bf16" ? 2 : 4; }
  int64_t head_bytes() const { return question_.seq * question_.head_dim * ValueBytes(); }

  Question question_;
  cpu::FlashAttention attention_;
  ThreadPool pool_;
  int64_t scratch_bytes_;
  Arena arena_;
  std::byte *q_, *k_, *v_, *out_, *scratch_;
  uint8_t* allowed_;  // [batch, seq]
  std::vector<Task> tasks_;
};

int64_t ArenaBytes(const Question& question, int64_t scratch_bytes) {
  const auto batch = static_cast<int64_t>(question.lens.size());
  const int64_t values = batch * question.heads * question.seq * question.head_dim;
  return 16 * values + batch * question.seq + question.threads * scratch_bytes + 6 * 64;
}

void FillRandom(std::byte* values, int64_t bytes, bool bf16) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < bytes; i += bf16 ? 2 : 4) {
    const float value = normal(random);
    const char* from = reinterpret_cast<const char*>(&value);
    bf16 ? std::memcpy(values + i, from + 2, 2) : std::memcpy(values + i, from, 4);
  }
}

KernelWorkload::KernelWorkload(const Question& question)
    : question_(question),
      attention_(
          *cpu::FlashAttention::Create(question.dtype == "bf16" ? DType::kBf16 : DType::kF32)),
      pool_(question.threads, cpu::FlushDenormals),
      scratch_bytes_(attention_.ScratchBytes(question.seq, question.head_dim, question.head_dim) /
                         64 * 64 +
                     64),
      arena_(ArenaBytes(question, scratch_bytes_)) {
  const auto batch = static_cast<int64_t>(question.lens.size());
  const int64_t bytes = batch * question.heads * head_bytes();
  for (std::byte** part : {&q_, &k_, &v_, &out_}) {
    *part = arena_.Allocate<std::byte>(bytes);
    FillRandom(*part, bytes, question.dtype == "bf16");
  }
  scratch_ = arena_.Allocate<std::byte>(scratch_bytes_ * question.threads);
  allowed_ = arena_.Allocate<uint8_t>(batch * question.seq);
  for (size_t i = 0; i < question.lens.size(); ++i) {
    uint8_t* allowed = allowed_ + static_cast<int64_t>(i) * question.seq;
    std::fill_n(allowed, question.seq, uint8_t{0});
    std::fill_n(allowed, question.lens[i], uint8_t{1});
    const int64_t rows = question.mask == "lengths" ? question.lens[i] : question.seq;
    const int64_t pieces = (rows + cpu::kMaxTaskQueries - 1) / cpu::kMaxTaskQueries;
    const int64_t step = (rows + pieces - 1) / pieces;
    for (int64_t head = 0; head < question.heads; ++head) {
      for (int64_t query = 0; query < rows; query += step) {
        tasks_.push_back({i, head, query, std::min(query + step, rows), rows});
      }
    }
  }
  std::stable_sort(tasks_.begin(), tasks_.end(), [](const Task& a, const Task& b) {
    return (a.query_end - a.query_begin) * a.keys > (b.query_end - b.query_begin) * b.keys;
  });
}

cpu::AttentionArgs KernelWorkload::ArgsOf(const Task& task, int thread) {
  const int64_t index = static_cast<int64_t>(task.sequence) * question_.heads + task.head;
  const int64_t offset = index * head_bytes(), dim = question_.head_dim;
  cpu::AttentionArgs args{.q = q_ + offset,
                          .k = k_ + offset,
                          .v = v_ + offset,
                          .out = out_ + offset,
                          .out_is_bf16 = question_.dtype == "bf16",
                          .q_stride = dim,
                          .k_stride = dim,
                          .v_stride = dim,
                          .out_stride = dim,
                          .keys = task.keys,
                          .head_dim = dim,
                          .value_dim = dim,
                          .query_begin = task.query_begin,
                          .query_end = task.query_end,
                          .scale = 1 / std::sqrt(static_cast<float>(dim)),
                          .scratch = scratch_ + thread * scratch_bytes_};
  if (question_.mask == "causal") args.keys_after = 0;
  if (question_.mask == "padding") {
    args.allowed = allowed_ + static_cast<int64_t>(task.sequence) * question_.seq;
  }
  return args;
}

double KernelWorkload::Seconds() {
  const cpu::ScopedDenormalFlush flush;
  const std::vector<double> times = SecondsOfCalls(question_.seconds, [&] {
    pool_.ParallelFor(static_cast<int64_t>(tasks_.size()), [&](int64_t index, int thread) {
      attention_.Run(ArgsOf(tasks_[static_cast<size_t>(index)], thread));
    });
  });
  return times[times.size() / 2];
}

class OperatorWorkload final : public Workload {
 public:
  explicit OperatorWorkload(const Question& question)
      : question_(question), pool_(question.threads, cpu::FlushDenormals) {
    using attention::InputRows;
    const bool bf16 = question.dtype == "bf16", packed = question.mask == "lengths";
    const int64_t heads = question.heads, dim = question.head_dim, seq = question.seq;
    for (int64_t len : question.lens) {
      starts_.push_back(starts_.back() + (packed ? len : seq));
      for (int64_t key = 0; key < seq; ++key) key_mask_.push_back(key < len);
    }
    const auto bytes = static_cast<size_t>(starts_.back() * heads * dim * (bf16 ? 2 : 4));
    for (auto* part : {&q_, &k_, &v_, &out_}) {
      part->resize(bytes);
      FillRandom(part->data(), static_cast<int64_t>(bytes), bf16);
    }
    const auto rows = [&](auto* values) {
      using Rows = attention::Rows<std::remove_pointer_t<decltype(values)>>;
      return packed ? Rows::TokensFirst(values, heads, dim)
                    : Rows::HeadsFirst(values, heads, dim, seq);
    };
    const attention::Operator* found = attention::FindOperator(question.level);
    if (found == nullptr) Die(absl::NotFoundError("no attention " + question.level));
    call_.kind = found->kind;
    const absl::StatusOr<const cpu::IsaLevel*> isa = attention::FindIsa("auto");
    if (!isa.ok()) Die(isa.status());
    call_.isa = *isa;
    if (call_.kind == attention::Kind::kLocal) call_.mask.window = 64;
    call_.dtype = bf16 ? DType::kBf16 : DType::kF32;
    const auto batch = static_cast<int64_t>(question.lens.size());
    call_.queries =
        packed ? attention::Sequences::Packed(starts_) : attention::Sequences::Dense(batch, seq);
    call_.keys = call_.queries;
    call_.query = rows(static_cast<const std::byte*>(q_.data()));
    call_.key = rows(static_cast<const std::byte*>(k_.data()));
    call_.value = rows(static_cast<const std::byte*>(v_.data()));
    call_.mask.causal = question.mask == "causal";
    if (question.mask == "padding") {
      call_.mask.keys = {key_mask_.data(), {static_cast<int64_t>(key_mask_.size())}};
    }
    outputs_.out = rows(out_.data());
    const absl::StatusOr<attention::Cost> cost = attention::Measure(call_, question.threads);
    if (!cost.ok()) Die(cost.status());
    arena_ = std::make_unique<Arena>(static_cast<size_t>(cost->scratch_bytes));
    scratch_ = {arena_->Allocate<std::byte>(cost->scratch_bytes),
                static_cast<size_t>(cost->scratch_bytes)};
  }

  double Seconds() override {
    const std::vector<double> times = SecondsOfCalls(question_.seconds, [&] {
      const absl::Status status = attention::Run(call_, pool_, scratch_, outputs_);
      if (!status.ok()) Die(status);
    });
    return times[times.size() / 2];
  }

 private:
  Question question_;
  ThreadPool pool_;
  std::vector<int64_t> starts_{0};  // [batch + 1]
  std::vector<uint8_t> key_mask_;   // [batch, seq]
  std::vector<std::byte> q_, k_, v_, out_;
  attention::Call call_;
  attention::Outputs outputs_;
  std::unique_ptr<Arena> arena_;
  std::span<std::byte> scratch_;
};

// Every sequence has SEQ tokens, without a mask.
class MultiHeadWorkload final : public Workload {
 public:
  explicit MultiHeadWorkload(const Question& question)
      : question_(question), pool_(question.threads, cpu::FlushDenormals) {
    absl::StatusOr<std::unique_ptr<CompareCase>> made =
        CompareCase::Create(attention::Kind::kMultiHead,
                            {.dtype = question.dtype == "bf16" ? DType::kBf16 : DType::kF32,
                             .batch = static_cast<int64_t>(question.lens.size()),
                             .len = question.seq,
                             .heads = question.heads,
                             .head_dim = question.head_dim});
    if (!made.ok()) Die(made.status());
    case_ = *std::move(made);
    const absl::StatusOr<attention::Cost> cost =
        attention::Measure(case_->call(), question.threads);
    if (!cost.ok()) Die(cost.status());
    arena_ = std::make_unique<Arena>(static_cast<size_t>(cost->scratch_bytes));
    scratch_ = {arena_->Allocate<std::byte>(cost->scratch_bytes),
                static_cast<size_t>(cost->scratch_bytes)};
  }

  double Seconds() override {
    const attention::Outputs outputs = case_->OutputsTo(nullptr);
    const std::vector<double> times = SecondsOfCalls(question_.seconds, [&] {
      const absl::Status status = attention::Run(case_->call(), pool_, scratch_, outputs);
      if (!status.ok()) Die(status);
    });
    return times[times.size() / 2];
  }

 private:
  Question question_;
  ThreadPool pool_;
  std::unique_ptr<CompareCase> case_;
  std::unique_ptr<Arena> arena_;
  std::span<std::byte> scratch_;
};

std::unique_ptr<Workload> MakeWorkload(const Question& question) {
  if (question.level == "multi_head") return std::make_unique<MultiHeadWorkload>(question);
  if (question.level == "kernel") return std::make_unique<KernelWorkload>(question);
  return std::make_unique<OperatorWorkload>(question);
}

// REQUIRES: a well-formed line; what sends it is our own.
Question Parse(const std::string& line) {
  std::istringstream words(line);
  Question question;
  words >> question.level >> question.dtype >> question.threads >> question.heads >>
      question.head_dim >> question.seq >> question.mask >> question.seconds;
  for (int64_t len = 0; words >> len;) question.lens.push_back(len);
  return question;
}

}  // namespace
}  // namespace attendant::bench

int main() {
  std::map<std::string, std::unique_ptr<attendant::bench::Workload>> workloads;  // made once each
  for (std::string line; std::getline(std::cin, line);) {
    auto& workload = workloads[line];
    if (workload == nullptr) {
      workload = attendant::bench::MakeWorkload(attendant::bench::Parse(line));
    }
    std::printf("{\"seconds\": %.9f}\n", workload->Seconds());
    std::fflush(stdout);
  }
}
