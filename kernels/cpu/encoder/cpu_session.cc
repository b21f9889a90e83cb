// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/cpu_session.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/token_scales.h"
#include "kernels/core/pooling.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/denormals.h"

namespace attendant::cpu {
namespace {

// Queries whose bias by distances is written out at once: a block of attention on AMX.
constexpr int64_t kGapQueries = 32;

// About the tokens of a section for each thread. Between its phases a layer's activations then stay
// in the second-level caches, as far as they fit; the weights come from further away in any case.
// Median of three ratios to whole batches of 4,096 tokens, mixed lengths, on one thread and on two
// of Zen 5 (1 MiB of cache each), nothing beside them:
//   tokens      MiniLM int8    BERT-base int8   MiniLM bf16   BERT-base bf16
//   256         1.15, 1.13     1.06, 1.03       1.04 (two)    1.00 (two)
//   512         1.12, 1.04     1.02, 1.02       1.03 (two)    1.01 (two)
constexpr int64_t kSectionTokens = 256;

bool HaveGaps(std::span<const int32_t> positions) {
  const auto apart = [](int32_t a, int32_t b) { return b != a + 1; };
  return std::adjacent_find(positions.begin(), positions.end(), apart) != positions.end();
}

}  // namespace

CpuSession::CpuSession(const CpuEncoder& encoder, const SessionLimits& limits,
                       const ThreadTeam& team)
    : encoder_(encoder),
      kernels_(encoder.layers().rows),
      limits_(limits),
      pool_(team, FlushDenormals),
      arena_([&] {  // what it must hold: measured by asking an empty one for the same things
        Arena measure(0);
        AllocateBuffers(measure);
        LayerRunner(encoder.layers(), team.threads, FewRows::kTogether, measure);
        return measure.used_bytes();
      }()),
      buffers_(AllocateBuffers(arena_)),
      runner_(encoder.layers(), team.threads, FewRows::kTogether, arena_) {}

CpuSession::Buffers CpuSession::AllocateBuffers(Arena& arena) const {
  const EncoderConfig& config = encoder_.config();
  const int64_t max_len = std::min(limits_.max_batch_tokens, config.max_positions);
  // A share has half of a section's tokens too many at most, and either end of a section is half a
  // sequence away from its share's at most.
  const int64_t rows =
      std::min(limits_.max_batch_tokens, section_tokens() + section_tokens() / 2 + max_len);
  Buffers buffers{
      // A section begins at any row, and matmuls may read up to a granule behind its last one.
      .states = arena.Allocate2<float>(RoundUpRows(limits_.max_batch_tokens) + kRowGranularity,
                                       config.hidden),
      .activations = Activations::WithoutStates(encoder_.layers(), rows, arena),
      .pooled = arena.Allocate2<float>(limits_.max_batch_sequences, config.hidden),
      .token_scales =
          config.dropped_token >= 0 ? arena.Allocate<float>(limits_.max_batch_tokens) : nullptr,
      .plan =
          AttentionPlan(arena.Allocate<AttentionPlan::Sequence>(limits_.max_batch_sequences + 1)),
      .attention_scratch = {}};
  for (int i = 0; i < pool_.threads(); ++i) {
    const VectorKernels& kernels = encoder_.layers().level.kernels;
    AttentionScratch& scratch = buffers.attention_scratch.emplace_back();
    scratch = {
        .attention = arena.Allocate<std::byte>(
            kernels.attention_scratch_bytes(max_len, config.head_dim(), config.head_dim())),
        .weights = arena.Allocate<std::byte>(
            kernels.attention_weights_scratch_bytes(max_len, config.head_dim())),
        .bias = config.is_relative() ? arena.Allocate<float>(bias_queries() * max_len) : nullptr};
    if (!has_disentangled()) continue;
    scratch.disentangled = encoder_.disentangled_scores().Allocate(arena, bias_queries(), max_len);
  }
  return buffers;
}

absl::Status CpuSession::Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) {
  ATTENDANT_RETURN_IF_ERROR(CheckSessionLimits(batch, spec, limits_));
  const EncoderConfig& config = encoder_.config();
  if (batch.max_len() > config.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("a sequence has ", batch.max_len(),
                                                   " tokens, the limit is ", config.max_positions));
  }
  const ScopedDenormalFlush flush;
  if (buffers_.token_scales != nullptr) {
    WriteTokenScales(batch, config.dropped_token, buffers_.token_scales);
  }
  const int64_t sections =
      std::max<int64_t>(1, (batch.tokens() + section_tokens() / 2) / section_tokens());
  Section section;
  for (int64_t i = 1; i <= sections; ++i) {
    section = NextSection(batch, section, i * batch.tokens() / sections);
    if (section.tokens > 0) ATTENDANT_RETURN_IF_ERROR(RunSection(batch, spec, section));
  }
  Pool(batch, spec);
  outputs.last_hidden_state = {buffers_.states.data(), {batch.tokens(), config.hidden}};
  outputs.pooled = {buffers_.pooled.data(), {batch.batch(), config.hidden}};
  return absl::OkStatus();
}

int64_t CpuSession::section_tokens() const { return kSectionTokens * pool_.threads(); }

// The section behind `last`, up to the end of a sequence that is nearest to `tokens`.
CpuSession::Section CpuSession::NextSection(const PackedBatch& batch, const Section& last,
                                            int64_t tokens) const {
  Section section{.begin = last.end, .end = last.end, .first_row = batch.seq_start(last.end)};
  while (section.end < batch.batch() &&
         batch.seq_start(section.end) + batch.seq_start(section.end + 1) <= 2 * tokens) {
    ++section.end;
  }
  section.tokens = batch.seq_start(section.end) - section.first_row;
  return section;
}

absl::Status CpuSession::RunSection(const PackedBatch& batch, const OutputSpec& spec,
                                    const Section& section) {
  const EncoderConfig& config = encoder_.config();
  const LastRows last_rows(batch, spec, section.begin, section.end);
  const int64_t state_bytes = config.hidden * static_cast<int64_t>(sizeof(float));
  auto* const states = reinterpret_cast<std::byte*>(buffers_.states.row(section.first_row));
  auto* const context = reinterpret_cast<std::byte*>(buffers_.activations.context.data());
  buffers_.activations.states = {buffers_.states.row(section.first_row),
                                 {section.tokens, config.hidden}};
  PlanAttention(batch, section, [&](int64_t sequence) {
    return LastRows::Range{0, batch.len(sequence)};
  });
  ATTENDANT_RETURN_IF_ERROR(runner_.Run(
      {.count = section.tokens,
       .last_count = last_rows.count(),
       .positions = batch.positions().subspan(static_cast<size_t>(section.first_row),
                                              static_cast<size_t>(section.tokens))},
      [&](int64_t row, float* row_states, float* scratch) {
        Embed(batch, section.first_row + row, row_states, scratch);
      },
      [&](int64_t layer) {
        WriteHiddenStates(batch, spec, section, layer);
        const bool fewer = layer + 1 == config.layers && last_rows.count() < section.tokens;
        if (fewer) {
          PlanAttention(batch, section, [&](int64_t sequence) { return last_rows.of(sequence); });
        }
        RunAttention(batch, spec, section, layer);
        if (!fewer) return absl::OkStatus();
        last_rows.MoveToFront(states, state_bytes);
        last_rows.MoveToFront(context, config.context_width() * context_value_bytes());
        return absl::OkStatus();
      },
      buffers_.activations, pool_));
  last_rows.MoveBack(states, state_bytes);
  WriteHiddenStates(batch, spec, section, config.layers);
  return absl::OkStatus();
}

// For the queries of each sequence that `queries` gives, a LastRows::Range.
template <typename Queries>
void CpuSession::PlanAttention(const PackedBatch& batch, const Section& section, Queries queries) {
  buffers_.plan.Fill(
      section.end - section.begin,
      {.heads = encoder_.config().heads, .most_queries = kMaxTaskQueries}, [&](int64_t i) {
        const int64_t sequence = section.begin + i;
        const LastRows::Range range = queries(sequence);
        return AttentionPlan::Lens{
            .queries = range.size(), .keys = batch.keys(sequence), .first_query = range.begin};
      });
}

int64_t CpuSession::context_value_bytes() const {
  return encoder_.info().dtype == DType::kBf16 ? 2 : 4;
}

void CpuSession::Embed(const PackedBatch& batch, int64_t row, float* states, float* scratch) const {
  const PackedEmbeddings& tables = encoder_.embeddings();
  const auto i = static_cast<size_t>(row);
  LayerNormArgs norm = encoder_.layers().norm_args(tables.norm);
  norm.hidden = encoder_.config().input_width();
  const float* token = tables.tokens.Row(batch.token_ids()[i], scratch);
  if (buffers_.token_scales != nullptr) {
    const float scale = buffers_.token_scales[row];
    std::transform(token, token + norm.hidden, scratch, [=](float value) { return value * scale; });
    token = scratch;
  }
  encoder_.layers().level.kernels.embed(token, tables.segments.row(batch.segment_ids()[i]),
                                        tables.position(batch.positions()[i]), norm, states);
}

void CpuSession::RunAttention(const PackedBatch& batch, const OutputSpec& spec,
                              const Section& section, int64_t layer) {
  const bool relative = encoder_.relative_scores().in(layer);
  pool_.ParallelFor(buffers_.plan.size(), [&](int64_t index, int thread) {
    const AttentionPiece piece = buffers_.plan[index];
    const int64_t sequence = section.begin + piece.sequence, row = batch.seq_start(sequence);
    const std::span<const int32_t> positions = batch.positions().subspan(
        static_cast<size_t>(row), static_cast<size_t>(batch.len(sequence)));
    const Task task{.piece = piece,
                    .scratch = buffers_.attention_scratch[static_cast<size_t>(thread)],
                    .layer = layer,
                    .first_row = row - section.first_row,
                    .positions = positions,
                    .gaps = relative && HaveGaps(positions)};
    Attend(task);
    if (spec.layers.empty()) return;
    WriteWeights(task, spec.layers[static_cast<size_t>(sequence)]);
  });
}

AttentionArgs CpuSession::ArgsOf(const Task& task, int64_t head) const {
  const EncoderConfig& config = encoder_.config();
  const int64_t head_dim = config.head_dim(), width = config.qkv_width();
  const int64_t head_bytes = head_dim * encoder_.layers().qkv_value_bytes();
  const int64_t key_head = config.heads + head / (config.heads / config.key_heads());
  const std::byte* qkv = buffers_.activations.qkv.row(task.first_row);
  return {.q = qkv + head * head_bytes,
          .k = qkv + key_head * head_bytes,
          .v = qkv + (key_head + config.key_heads()) * head_bytes,
          .q_stride = width,
          .k_stride = width,
          .v_stride = width,
          .keys = task.piece.keys,
          .head_dim = head_dim,
          .value_dim = head_dim,
          .query_begin = task.piece.query_begin,
          .query_end = task.piece.query_end,
          .scale = config.score_scale()};
}

// Queries whose bias is written out at once. Disentangled, all of a piece: each time all keys are
// multiplied.
int64_t CpuSession::bias_queries() const {
  return has_disentangled() ? kMaxTaskQueries : kGapQueries;
}

// Calls body(args, first) for the piece's queries: for all at once, or, where positions have gaps
// or scores are disentangled, for some at a time with their bias written out. Query `first` of the
// sequence is number 0 of `args`.
template <typename Body>
void CpuSession::ForQueries(const Task& task, int64_t head, Body body) const {
  const RelativeScores& relative = encoder_.relative_scores();
  AttentionArgs args = ArgsOf(task, head);
  if (!task.gaps && !has_disentangled()) {
    relative.Apply(task.layer, head, args);
    return body(args, 0);
  }
  const AttentionArgs whole = args;
  const int64_t row_bytes = args.q_stride * encoder_.layers().qkv_value_bytes();
  float* const bias = task.scratch.bias;
  args.bias = bias;
  args.bias_stride = args.keys;
  args.query_begin = 0;
  const int64_t piece_end = task.piece.query_end;
  for (int64_t begin = task.piece.query_begin, end; begin < piece_end; begin = end) {
    end = std::min(begin + bias_queries(), piece_end);
    if (has_disentangled()) {
      encoder_.disentangled_scores().Write(task.layer, head, whole, task.positions, begin, end,
                                           task.scratch.disentangled, bias);
    } else {
      relative.Write(task.layer, head, task.positions, args.keys, begin, end, bias);
    }
    args.q = static_cast<const std::byte*>(whole.q) + begin * row_bytes;
    args.query_end = end - begin;
    body(args, begin);
  }
}

void CpuSession::Attend(const Task& task) {
  const int64_t width = encoder_.config().context_width(), head_dim = encoder_.config().head_dim();
  const int64_t value_bytes = context_value_bytes();
  auto* const context = reinterpret_cast<std::byte*>(buffers_.activations.context.data());
  for (int64_t head = task.piece.head_begin; head < task.piece.head_end; ++head) {
    ForQueries(task, head, [&](AttentionArgs args, int64_t first) {
      args.out_is_bf16 = value_bytes == 2;
      args.out = context + ((task.first_row + first) * width + head * head_dim) * value_bytes;
      args.out_stride = width;
      args.scratch = task.scratch.attention;
      kernels_.attention(args);
    });
  }
}

// Beside the attention of the same piece: the layer's queries and keys are still in the cache, and
// no barrier is added.
void CpuSession::WriteWeights(const Task& task, const LayerOutputs& wanted) {
  AttentionPiece piece = task.piece;
  const auto len = static_cast<int64_t>(task.positions.size());
  const int64_t queries = wanted.queries(len);
  piece.query_end = std::min(piece.query_end, queries);
  if (piece.query_begin >= piece.query_end) return;
  const Task shown{.piece = piece,
                   .scratch = task.scratch,
                   .layer = task.layer,
                   .first_row = task.first_row,
                   .positions = task.positions,
                   .gaps = task.gaps};
  float* out = wanted.attention_weights;
  for (const int32_t wanted_layer : wanted.attention_layers) {
    for (const int32_t head : wanted.attention_heads) {
      if (wanted_layer == task.layer && head >= piece.head_begin && head < piece.head_end) {
        ForQueries(shown, head, [&](AttentionArgs args, int64_t first) {
          args.scratch = task.scratch.weights;
          kernels_.attention_weights(args, out + first * len, len);
        });
        for (int64_t query = piece.query_begin; query < piece.query_end; ++query) {
          std::fill(out + query * len + piece.keys, out + (query + 1) * len, 0.0f);
        }
      }
      out += queries * len;
    }
  }
}

// `layer` is the one that reads the states next.
void CpuSession::WriteHiddenStates(const PackedBatch& batch, const OutputSpec& spec,
                                   const Section& section, int64_t layer) {
  if (spec.layers.empty()) return;
  pool_.ParallelFor(section.end - section.begin, [&](int64_t index, int) {
    const int64_t sequence = section.begin + index;
    const LayerOutputs& wanted = spec.layers[static_cast<size_t>(sequence)];
    const int64_t values = batch.len(sequence) * encoder_.config().hidden;
    float* out = wanted.hidden_states;
    for (const int32_t wanted_layer : wanted.hidden_layers) {
      if (wanted_layer == layer)
        std::copy_n(buffers_.states.row(batch.seq_start(sequence)), values, out);
      out += values;
    }
  });
}

void CpuSession::Pool(const PackedBatch& batch, const OutputSpec& spec) {
  pool_.ParallelFor(batch.batch(), [&](int64_t index, int) {
    const SequenceOutputs& wanted = spec.sequences[static_cast<size_t>(index)];
    if (wanted.pooling == Pooling::kNone) return;
    PoolSequence(
        {buffers_.states.row(batch.seq_start(index)), {batch.len(index), encoder_.config().hidden}},
        wanted, buffers_.pooled.row(index));
  });
}

}  // namespace attendant::cpu
