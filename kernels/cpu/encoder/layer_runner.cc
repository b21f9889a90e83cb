// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/layer_runner.h"

#include <algorithm>
#include <utility>

#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"

namespace attendant::cpu {

Activations::Activations(const PackedLayers& layers, int64_t max_tokens, Arena& arena)
    : Activations(WithoutStates(layers, max_tokens, arena)) {
  states = arena.Allocate2<float>(RoundUpRows(max_tokens), layers.config.hidden);
}

Activations Activations::WithoutStates(const PackedLayers& layers, int64_t max_tokens,
                                       Arena& arena) {
  const int64_t rows = RoundUpRows(max_tokens);
  Activations all;
  all.qkv = arena.Allocate2<std::byte>(rows, layers.config.qkv_width() * layers.qkv_value_bytes());
  all.context = arena.Allocate2<float>(rows, layers.config.context_width());
  all.choices = Choices(layers, max_tokens, arena);
  return all;
}

LayerRunner::LayerRunner(const PackedLayers& layers, int threads, FewRows few_rows, Arena& arena)
    : layers_(layers),
      kernels_(layers.rows),
      dtype_(layers.dtype),
      blocks_(layers, threads, few_rows, arena),
      experts_(layers, blocks_, arena) {}

absl::Status LayerRunner::Run(const Tokens& tokens, Input input, Attention attention,
                              const Activations& activations, ThreadPool& pool) {
  positions_ = tokens.positions;
  input_ = &input;
  activations_ = &activations;
  blocks_.Use(pool);
  const int64_t layers = layers_.config.layers;
  for (int64_t layer = 0; RunRows(layer < layers ? tokens.count : tokens.last_count, layer);
       ++layer) {
    if (layer == layers) return absl::OkStatus();
    ATTENDANT_RETURN_IF_ERROR(attention(layer));
  }
  return absl::InternalError("oneDNN could not execute a matmul");
}

bool LayerRunner::RunRows(int64_t tokens, int64_t layer) {
  if (tokens == 0) return true;
  blocks_.ForgetFailures();
  if (layer > 0 && layers_.config.has_experts(layer - 1)) {
    RunExperts(tokens, layer);
  } else {
    blocks_.ForEachBlock(tokens, [&](const Block& block) { RunBlock(block, layer); });
  }
  return !blocks_.failed();
}

LayerRunner::Next LayerRunner::NextAttention(int64_t layer) const {
  if (layer == layers_.config.layers) return {};
  const PackedLayer& weights = layers_.layer(layer);
  const bool normed = pre_norm() && (layer > 0 || layers_.config.first_attention_norm);
  return {&weights.linears[kQkv], normed ? &weights.attention_norm : nullptr};
}

void LayerRunner::RunBlock(const Block& block, int64_t layer) {
  const Next next = NextAttention(layer);
  if (layer == 0) {
    ReadInput(block, next);
  } else {
    const PackedLayer& weights = layers_.layer(layer - 1);
    AddAttention(block, weights,
                 {&weights.linears[kFfnUp], pre_norm() ? &weights.ffn_norm : nullptr});
    FeedForward(block, weights, next);
  }
  Leave(block, next, layer);
}

// The same where layer `layer - 1` has experts.
void LayerRunner::RunExperts(int64_t tokens, int64_t layer) {
  const Next next = NextAttention(layer);
  const PackedLayer& weights = layers_.layer(layer - 1);
  blocks_.ForEachBlock(tokens, [&](const Block& block) {
    AddAttention(block, weights, {});
    ReadForExperts(block, weights);
  });
  experts_.Compute(tokens, weights.experts, ExpertInputs(0), activations_->choices);
  blocks_.ForEachBlock(tokens, [&](const Block& block) {
    AddExperts(block, weights, next);
    Leave(block, next, layer);
  });
}

// The steps behind the layer before `layer`: the next layer's projection, or the last norm.
void LayerRunner::Leave(const Block& block, const Next& next, int64_t layer) {
  if (next.linear != nullptr) return ProjectQkv(block, next, layer);
  if (!layers_.config.final_norm) return;
  blocks_.ForEachRow(block, [&](int64_t row, int) {
    kernels_.layer_norm(activations_->states.row(block.begin + row), layers_.final_norm_args(), {});
  });
}

OperandRow LayerRunner::NextOperand(const Block& block, int64_t row, const Next& next) {
  if (next.linear == nullptr) return {};
  return blocks_.ScratchOf(block).states.row(row, SmoothingOf(*next.linear));
}

// `norm` with the states left as they are.
LayerNormArgs LayerRunner::BesideStates(LayerNormArgs norm, const OperandRow& operand, int thread) {
  norm.y =
      dtype_ == DType::kF32 ? static_cast<float*>(operand.values) : blocks_.row_scratch(thread);
  return norm;
}

// states = input, and the operand of `next`.
void LayerRunner::ReadInput(const Block& block, const Next& next) {
  const bool projects = layers_.config.projects_embeddings();
  if (projects) ProjectInput(block);
  blocks_.ForEachRow(block, [&](int64_t row, int thread) {
    float* states = activations_->states.row(block.begin + row);
    if (!projects) (*input_)(block.begin + row, states, blocks_.row_scratch(thread));
    WriteNext(states, next, NextOperand(block, row, next), thread);
  });
}

// states = input W + b
void LayerRunner::ProjectInput(const Block& block) {
  const int64_t width = layers_.config.embedding_width;
  float* const input = blocks_.ScratchOf(block).wide_matmul_out.data();
  blocks_.ForEachRow(block, [&](int64_t row, int thread) {
    (*input_)(block.begin + row, input + row * width, blocks_.row_scratch(thread));
  });
  blocks_.Multiply(block, kEmbeddingProjection, layers_.embedding_projection,
                   {.values = reinterpret_cast<std::byte*>(input)},
                   activations_->states.row(block.begin));
}

// The operand of `next`, if anything reads the states.
void LayerRunner::WriteNext(float* states, const Next& next, const OperandRow& operand,
                            int thread) {
  if (next.linear == nullptr) return;
  if (next.norm == nullptr) return kernels_.convert(states, layers_.config.hidden, operand);
  const LayerNormArgs norm = layers_.norm_args(*next.norm);
  kernels_.layer_norm(states, BesideStates(norm, operand, thread), operand);
}

// The next matmul's input, made of the block's states behind `norm`. In f32 without a norm it
// is the states themselves.
Operand LayerRunner::StatesOperand(const Block& block, const PackedNorm* norm) {
  const Operand& converted = blocks_.ScratchOf(block).states;
  if (dtype_ != DType::kF32 || norm != nullptr) return converted;
  return {.values = reinterpret_cast<std::byte*>(activations_->states.row(block.begin)),
          .row_bytes = converted.row_bytes};
}

// The block's attention outputs likewise; attention writes them in f32 for int8, since a row's
// range is known only when all heads are done.
Operand LayerRunner::ContextOperand(const Block& block) {
  const int64_t width = layers_.config.context_width();
  if (dtype_ != DType::kInt8) {
    auto* context = reinterpret_cast<std::byte*>(activations_->context.data());
    const int64_t row_bytes = width * (dtype_ == DType::kBf16 ? 2 : 4);
    return {.values = context + block.begin * row_bytes, .row_bytes = row_bytes};
  }
  const Operand& converted = blocks_.ScratchOf(block).context;
  blocks_.ForEachRow(block, [&](int64_t row, int) {
    kernels_.convert(activations_->context.row(block.begin + row), width, converted.row(row));
  });
  return converted;
}

// states += context W_o + b_o
void LayerRunner::AddAttention(const Block& block, const PackedLayer& weights, const Next& next) {
  AddBranch(block, kAttentionOutput, weights, ContextOperand(block), next);
}

// In f32, from which experts are chosen: the states, or their norm.
float* LayerRunner::ExpertInputs(int64_t row) const {
  return (pre_norm() ? activations_->choices.inputs : activations_->states).row(row);
}

void LayerRunner::ReadForExperts(const Block& block, const PackedLayer& weights) {
  if (pre_norm()) {
    blocks_.ForEachRow(block, [&](int64_t row, int) {
      LayerNormArgs norm = layers_.norm_args(weights.ffn_norm);
      norm.y = ExpertInputs(block.begin + row);
      kernels_.layer_norm(activations_->states.row(block.begin + row), norm, {});
    });
  }
  experts_.Choose(block, weights.experts, ExpertInputs(block.begin), activations_->choices);
}

// states += the sum of the experts' outputs
void LayerRunner::AddExperts(const Block& block, const PackedLayer& weights, const Next& next) {
  const int64_t hidden = layers_.config.hidden;
  blocks_.ForEachRow(block, [&](int64_t row, int thread) {
    float* states = activations_->states.row(block.begin + row);
    float* branch = blocks_.row_scratch(thread);
    experts_.Sum(block.begin + row, weights.experts, activations_->choices, branch);
    if (layers_.config.norms_outputs()) {
      kernels_.layer_norm(branch, layers_.norm_args(weights.ffn_output_norm), {});
    }
    for (int64_t i = 0; i < hidden; ++i) states[i] += branch[i];
    const OperandRow operand = NextOperand(block, row, next);
    if (pre_norm()) return WriteNext(states, next, operand, thread);
    kernels_.layer_norm(states, layers_.norm_args(weights.ffn_norm), operand);
  });
}

// states += intermediate W_down + b_down
void LayerRunner::FeedForward(const Block& block, const PackedLayer& weights, const Next& next) {
  const Operand states = StatesOperand(block, pre_norm() ? &weights.ffn_norm : nullptr);
  const Operand& inner = blocks_.Intermediate(block, weights.linears[kFfnUp], states);
  AddBranch(block, kFfnDown, weights, inner, next);
}

// states += operand W + b, normalized as the configuration has it, and the operand of `next`.
void LayerRunner::AddBranch(const Block& block, LayerLinear which, const PackedLayer& weights,
                            const Operand& operand, const Next& next) {
  const BlockLinears::Scratch& scratch = blocks_.ScratchOf(block);
  const PackedLinear& linear = weights.linears[which];
  const bool adds = layers_.matmuls[which]->options().output == MatmulOutput::kAdded;
  blocks_.Multiply(block, which, linear, operand,
                   adds ? activations_->states.row(block.begin) : scratch.matmul_out.data());
  const PackedNorm* norm = which == kFfnDown ? &weights.ffn_norm : &weights.attention_norm;
  if (pre_norm()) norm = next.norm;
  LayerNormArgs args{.hidden = layers_.config.hidden};
  if (norm != nullptr) args = layers_.norm_args(*norm);
  blocks_.ForEachRow(block, [&](int64_t row, int thread) {
    float* states = activations_->states.row(block.begin + row);
    const OperandRow x = operand.row(row), result = NextOperand(block, row, next);
    const MatmulRow matmul = RowOf(scratch.matmul_out, row, x, linear);
    if (const PackedNorm& output_norm = weights.output_norm(which); !output_norm.gamma.empty()) {
      AddNormed(states, matmul, x, linear, output_norm, thread);
      if (pre_norm()) return WriteNext(states, next, result, thread);
      return kernels_.layer_norm(states, args, result);
    }
    AddOutliers(linear, x, states);
    const LayerNormArgs placed = pre_norm() ? BesideStates(args, result, thread) : args;
    if (!adds) return kernels_.add_layer_norm(states, matmul, linear.bias.data(), placed, result);
    if (norm != nullptr) kernels_.layer_norm(states, placed, result);
  });
}

// states += norm(x W + b), of a row, or with a second norm states += norm(states + x W + b).
void LayerRunner::AddNormed(float* states, const MatmulRow& matmul, const OperandRow& x,
                            const PackedLinear& linear, const PackedNorm& norm, int thread) {
  const int64_t hidden = layers_.config.hidden;
  float* branch = blocks_.row_scratch(thread);
  std::fill_n(branch, hidden, 0.0f);
  if (layers_.config.second_attention_norm) std::copy_n(states, hidden, branch);
  AddOutliers(linear, x, branch);
  kernels_.add_layer_norm(branch, matmul, linear.bias.data(), layers_.norm_args(norm), {});
  for (int64_t i = 0; i < hidden; ++i) states[i] += branch[i];
}

void LayerRunner::ProjectQkv(const Block& block, const Next& next, int64_t layer) {
  const PackedLinear& linear = *next.linear;
  const Operand states = StatesOperand(block, next.norm);
  if (layers_.matmuls[kQkv]->options().bias) {
    blocks_.Multiply(block, kQkv, linear, states, activations_->qkv.row(block.begin));
    return PlaceQueriesAndKeys(block, layer);
  }
  const int64_t columns = layers_.config.qkv_width();
  float* wide_matmul_out = blocks_.ScratchOf(block).wide_matmul_out.data();
  blocks_.Multiply(block, kQkv, linear, states, wide_matmul_out);
  const TensorView<float, 2> matmul_out(wide_matmul_out, {block.rows, columns});
  blocks_.ForEachRow(block, [&](int64_t row, int) {
    kernels_.add_bias(RowOf(matmul_out, row, states.row(row), linear), linear.bias.data(), columns,
                      activations_->qkv.row(block.begin + row));
  });
  PlaceQueriesAndKeys(block, layer);
}

// Normalizes queries and keys, which lie side by side, and turns them where positions are rotary.
void LayerRunner::PlaceQueriesAndKeys(const Block& block, int64_t layer) {
  const EncoderConfig& config = layers_.config;
  const bool rotary = config.positions == Positions::kRotary;
  const bool norms = config.query_key_norm != QueryKeyNorm::kNone;
  if (!rotary && !norms) return;
  const PackedLayer& weights = layers_.layer(layer);
  const RotaryTable& table = layers_.rotary_of(layer);
  const int64_t head_dim = config.head_dim();
  blocks_.ForEachRow(block, [&](int64_t row, int) {
    std::byte* q = activations_->qkv.row(block.begin + row);
    if (norms) {
      std::byte* k = q + config.context_width() * layers_.qkv_value_bytes();
      const LayerNormArgs q_norm = layers_.query_key_norm_args(weights.query_norm);
      const LayerNormArgs k_norm = layers_.query_key_norm_args(weights.key_norm);
      kernels_.normalize_heads(q, config.context_width() / q_norm.hidden, q_norm);
      kernels_.normalize_heads(k, config.key_width() / k_norm.hidden, k_norm);
    }
    if (!rotary) return;
    const int64_t position = positions_[static_cast<size_t>(block.begin + row)];
    kernels_.rotate(q, config.heads + config.key_heads(), head_dim, table.cosines(position),
                    table.sines(position));
  });
}

}  // namespace attendant::cpu
