// SPDX-License-Identifier: Apache-2.0
#include "server/models/warm_up.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <vector>

#include "kernels/core/packed_batch.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

using Lens = std::vector<int64_t>;

// Lengths in the proportions of mixed texts: eight quantiles of a log-normal distribution with
// median 48 and sigma 0.54, out of order.
constexpr std::array<int64_t, 8> kMixedLens = {45, 108, 28, 66, 19, 84, 36, 55};

// Sequences of mixed lengths, `tokens` in all.
Lens Mixed(int64_t tokens, const SessionLimits& limits, int64_t max_len) {
  Lens lens;
  while (tokens > 0 && std::ssize(lens) < limits.max_batch_sequences) {
    const int64_t len = kMixedLens[lens.size() % kMixedLens.size()];
    lens.push_back(std::min({len, max_len, tokens}));
    tokens -= lens.back();
  }
  return lens;
}

// Sequences alone, batches of one length, and batches of mixed lengths of twelve sizes: the time
// rises in steps of kernels' blocks, and a line through few sizes may lie on the steps' edges.
std::vector<Lens> ShapesToMeasure(const SessionLimits& limits, int64_t max_len) {
  constexpr int64_t kSizes = 12;
  const int64_t most = limits.max_batch_tokens;
  std::vector<Lens> shapes;
  const auto add = [&](const Lens& lens) {
    if (std::find(shapes.begin(), shapes.end(), lens) == shapes.end()) shapes.push_back(lens);
  };
  const auto add_uniform = [&](int64_t len, int64_t tokens) {
    len = std::min(len, max_len);
    const int64_t count =
        std::clamp<int64_t>(std::min(tokens, most) / len, 1, limits.max_batch_sequences);
    add(Lens(static_cast<size_t>(count), len));
  };
  for (const int64_t len : {int64_t{16}, int64_t{64}, int64_t{256}, max_len}) add_uniform(len, len);
  for (const int64_t len : {16, 256}) add_uniform(len, most / 4);
  for (int64_t size = 1; size <= kSizes; ++size) {
    add(Mixed(std::max<int64_t>(most * size / kSizes, 1), limits, max_len));
  }
  return shapes;
}

// An output that a head makes of every token. A masked language model predicts at masks alone, with
// the same operations for each as a sparse vector takes for a token.
TaskKind KindOfAllTokens(const Head& head) {
  for (const TaskKind kind : {TaskKind::kTokenScores, TaskKind::kMultiVector}) {
    if (head.Makes(kind)) return kind;
  }
  return TaskKind::kSparse;
}

// RunZeros that keeps the outputs.
absl::Status RunZerosTo(Session& session, std::span<const int64_t> lens, Outputs& outputs) {
  const int64_t longest = *std::max_element(lens.begin(), lens.end());
  const std::vector<int32_t> zeros(static_cast<size_t>(longest));
  std::vector<int32_t> positions(zeros.size());
  std::iota(positions.begin(), positions.end(), 0);
  PackedBatch batch;
  for (const int64_t len : lens) {
    const auto size = static_cast<size_t>(len);
    batch.Append(std::span(zeros).first(size), std::span(positions).first(size),
                 std::span(zeros).first(size));
  }
  // All last states: of a model that pools one token, the first estimates are 6 to 18 % too high.
  const std::vector<SequenceOutputs> spec(
      lens.size(), SequenceOutputs{.last_hidden_state = true, .pooling = Pooling::kMean});
  return session.Run(batch, {.sequences = spec}, outputs);
}

// REQUIRES: the session made last states.
absl::Status CheckFinite(const Outputs& outputs) {
  const TensorView<const float, 2>& states = outputs.last_hidden_state;
  const float* const end = states.data() + states.size();
  if (std::all_of(states.data(), end, [](float value) { return std::isfinite(value); })) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "the last states of token 0 are not finite: the weights overflow this number format, or are "
      "not finite");
}

absl::StatusOr<CostModel::Sample> Measure(Session& session, const Lens& lens, SteadyClock now) {
  CostModel::Sample sample;
  for (const int64_t len : lens) sample.shape.Add(len);
  const absl::Time start = now();
  ATTENDANT_RETURN_IF_ERROR(RunZeros(session, lens));
  sample.time = std::max(now() - start, absl::Nanoseconds(1));
  return sample;
}

}  // namespace

absl::Status RunZeros(Session& session, std::span<const int64_t> lens) {
  Outputs outputs;
  return RunZerosTo(session, lens, outputs);
}

absl::Status WarmUp(Session& session, const SessionLimits& limits, int64_t max_sequence_tokens) {
  Outputs outputs;
  ATTENDANT_RETURN_IF_ERROR(RunZerosTo(session, Lens{1}, outputs));
  ATTENDANT_RETURN_IF_ERROR(CheckFinite(outputs));
  const int64_t count =
      std::min(limits.max_batch_sequences, limits.max_batch_tokens / max_sequence_tokens);
  return RunZeros(session, Lens(static_cast<size_t>(count), max_sequence_tokens));
}

absl::StatusOr<std::vector<int64_t>> MeasureHeads(
    std::span<const std::unique_ptr<const Head>> heads,
    std::span<const std::unique_ptr<HeadRunner>> runners, const SessionLimits& limits,
    int64_t hidden, ThreadPool& pool, SteadyClock now) {
  constexpr int64_t kMostTokens = 64;
  const int64_t tokens = std::min(limits.max_batch_tokens, kMostTokens);
  const std::vector<int32_t> ids(static_cast<size_t>(tokens));
  const std::vector<float> states(static_cast<size_t>(tokens * hidden), 0.5f);
  std::vector<int64_t> row_ns;
  for (size_t i = 0; i < heads.size(); ++i) {
    const TaskOptions options{.kind = KindOfAllTokens(*heads[i])};
    absl::Duration time;
    for (int round = 0; round < 2; ++round) {
      HeadResult result;
      const HeadInput input{.options = &options,
                            .token_ids = ids,
                            .states = {states.data(), {tokens, hidden}},
                            .result = &result};
      const absl::Time start = now();
      ATTENDANT_RETURN_IF_ERROR(runners[i]->Run({&input, 1}, pool));
      time = now() - start;
    }
    row_ns.push_back(std::max<int64_t>(absl::ToInt64Nanoseconds(time) / tokens, 1));
  }
  return row_ns;
}

// The least of some times of a shape: what else runs on the machine only adds.
absl::StatusOr<CostModel> MeasureCost(Session& session, const SessionLimits& limits,
                                      int64_t max_sequence_tokens, SteadyClock now) {
  constexpr int kRounds = 5;
  constexpr absl::Duration kTime = absl::Milliseconds(400);
  const std::vector<Lens> shapes = ShapesToMeasure(limits, max_sequence_tokens);
  std::vector<CostModel::Sample> samples;
  const absl::Time end = now() + kTime;
  for (int round = 0; round < kRounds && (round == 0 || now() < end); ++round) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      ATTENDANT_ASSIGN_OR_RETURN(const CostModel::Sample sample, Measure(session, shapes[i], now));
      if (round == 0) {
        samples.push_back(sample);
      } else {
        samples[i].time = std::min(samples[i].time, sample.time);
      }
    }
  }
  return CostModel::Fit(samples);
}

}  // namespace attendant
