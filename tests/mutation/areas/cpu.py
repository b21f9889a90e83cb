# SPDX-License-Identifier: Apache-2.0
TESTS = ["cpu_test:-Isa/FlashAttentionTest.*:Isa/AttentionWeightsTest.*", "backends_switches_test",
         "cpu_test:Isa/FlashAttentionTest.*", "cpu_test:Isa/AttentionWeightsTest.*", "backends_parity_test"]
AMX_TESTS = ["cpu_test_amx_emulation:*/amx*:Amx*:PackedDotsTest.*:PackedLinearTest.*:MatmulOutputsOfLevelsTest.*"]
AMX_ENCODER_TESTS = ["backends_amx_emulation_test"]
FILE_TESTS = {
    "kernels/cpu/encoder/cpu_session.cc": [*TESTS, "backends_layer_outputs_test"],  # batches of several sections
    "kernels/cpu/encoder/block_linears.cc": [*TESTS, *AMX_ENCODER_TESTS],
    "kernels/cpu/encoder/experts.cc": [*TESTS, "backends_invariance_test:*Experts*"],
    "kernels/cpu/encoder/layer_runner.cc": [*TESTS, *AMX_ENCODER_TESTS],
    "kernels/cpu/encoder/packed_layers.cc": [*TESTS, *AMX_ENCODER_TESTS],
    "kernels/cpu/matmul/onednn_matmul.cc": [*TESTS, "backends_forced_isa_test:*SlowMatmuls*"],
    "kernels/cpu/matmul/tile_matmul.cc": [*TESTS, *AMX_TESTS],
    "kernels/cpu/simd/amx/amx_matmul.inc": AMX_TESTS,
    "kernels/cpu/simd/amx/amx_outputs.inc": AMX_TESTS,
    "kernels/cpu/simd/attention/amx_attention.inc": AMX_TESTS,
    "kernels/cpu/simd/attention/amx_attention_buffers.inc": AMX_TESTS,
    "kernels/cpu/simd/attention/amx_attention_steps.inc": AMX_TESTS,
    "kernels/cpu/simd/attention/amx_packed_dots.inc": AMX_TESTS,
}
MUTANTS = {
    "kernels/cpu/attention/attention_plan.cc": [
        ("std::min(query + cut.queries, sequence.lens.queries)",
         "std::min(query + cut.queries, sequence.lens.queries - 1)"),
    ],
    "kernels/cpu/encoder/block_linears.cc": [
        ("value - x.quantization->zero_point", "value"),
        ("kernels_.convert(«activated + row * columns», columns", "activated"),
    ],
    "kernels/cpu/encoder/cpu_session.cc": [
        ("head >= piece.head_begin && head < piece.head_end", "head > piece.head_begin && head < piece.head_end"),
        ("WriteHiddenStates(batch, spec, section, config.layers);", "WriteHiddenStates(batch, spec, section, config.layers - 1);"),
        (".first_row = «row - section.first_row»,", "row"),
        ("Embed(batch, «section.first_row + row», row_states, scratch)", "row"),
        ("sequence = «section.begin + i»;\n        const LastRows", "i"),
        (".first_query = «range.begin»", "0"),
        ("last_rows.MoveToFront(context, «config.context_width() * context_value_bytes()»);", "config.context_width()"),
        ("last_rows.MoveBack(states, «state_bytes»);", "0"),
        ("<= «2 * tokens») {", "tokens"),
        ("tables.segments.row(batch.segment_ids()[i])", "tables.segments.row(0)"),
        ("return «b != a + 1»;", "b < a"),
        ("args.q = «static_cast<const std::byte*>(whole.q) + begin * row_bytes»;", "whole.q"),
        ("head / «(config.heads / config.key_heads())»", "1"),
    ],
    "kernels/cpu/encoder/disentangled_scores.cc": [
        (".begin = «BucketAt(*last_key - *first)»", "BucketAt(*last_key - *last)"),
        (".end = «BucketAt(*first_key - *last) + 1»", "BucketAt(*first_key - *last)"),
        ("of_query[bucket] + of_key[bucket]", "of_query[bucket]"),
        ("dots.packed = «packed_queries + packed_bytes_»;", "packed_queries"),
        ("to[i] = «from[i] * scale»;", "from[i]"),
    ],
    "kernels/cpu/encoder/embedding_table.cc": [
        ("std::nearbyint(values[i] * inverse)", "values[i] * inverse"),
        ("scales_[row] = largest / «127»", "128"),
        ("bf16_[i] = ToBf16(«values[i] * scale»);", "values[i]"),
    ],
    "kernels/cpu/encoder/expert_choice.cc": [
        ("best < 0 || «scores[static_cast<size_t>(i)] > scores[static_cast<size_t>(best)]»",
         "scores[static_cast<size_t>(i)] >= scores[static_cast<size_t>(best)]"),
        ("if («std::find(experts.begin(), to, i) != to») continue;", "false"),
        ("std::exp(«value - largest»)", "value"),
    ],
    "kernels/cpu/encoder/experts.cc": [
        ("const int64_t first = «(block.begin + row)» * per_token_;", "row"),
        ("x + «choices.rows[group.begin + row]» * hidden", "(group.begin + row)"),
        ("std::fill_n(outputs, block.rows * hidden, 0.0f);", ""),
        ("AddOutliers(down, operand, y);", ""),
        ("choices.outputs.row(«choices.places[i]»)", "i"),
        ("static_cast<int32_t>(«i / per_token_»)", "i"),
        ("scratch.states.row(row, «SmoothingOf(up)»)", "nullptr"),
        (".end = begin + «(index + 1) * rows / groups»", "(index + 1) * rows / groups - 1"),
    ],
    "kernels/cpu/encoder/last_rows.cc": [
        ("if («outputs.last_hidden_state || layers») return all;", "outputs.last_hidden_state"),
        ("{«all.end - 1», all.end}", "0"),
        ("return {0, «1»};", "all.end"),
        ("«batch_.seq_start(i) - batch_.seq_start(begin_) + range.begin»;\n    Move(", "batch_.seq_start(i) + range.begin"),
        ("int64_t front = «count_»;", "0"),
    ],
    "kernels/cpu/encoder/layer_runner.cc": [
        ("«layer < layers» ? tokens.count", "layer <= layers"),
        ("AddOutliers(linear, x, states);", "if (row == 0) AddOutliers(linear, x, states);"),
        ("std::fill_n(branch, hidden, 0.0f);", ""),
        ("if («norm != nullptr») kernels_.layer_norm", "false"),
        ("if (pre_norm()) norm = next.norm;", "if (pre_norm() && norm == nullptr) norm = next.norm;"),
        ("norm.y = «ExpertInputs(block.begin + row)»;", "ExpertInputs(row)"),
        ("if («layers_.config.norms_outputs()») {\n      kernels_.layer_norm(branch", "false"),
        ("pre_norm() && «(layer > 0 || layers_.config.first_attention_norm)»", "true"),
    ],
    "kernels/cpu/encoder/packed_layers.h": [
        (".epsilon = «config.layer_norm_epsilon»", "1e-12f"),
    ],
    "kernels/cpu/encoder/packed_layers.cc": [
        ("smoothing.qkv", "smoothing.ffn_up"),
        ("«wanted.output != MatmulOutput::kSums» && HasOutput", "true"),
        ("IsOfFfn(linear) && «config.has_experts(layer)» ? config.experts", "true"),
        ("return «config.norms_outputs() ? MatmulOutput::kSums : MatmulOutput::kAdded»;", "MatmulOutput::kAdded"),
    ],
    "kernels/cpu/encoder/relative_scores.cc": [
        ("std::abs(distance) <= Window(layer)", "std::abs(distance) < Window(layer)"),
        ("args.bias_stride = «-1»;", "1"),
        ("«causal_ ? 0 : Window(layer)»", "Window(layer)"),
        ("«!(causal_ && distance > 0)»", "true"),
        ("by_distance_.data() + head * (2 * max_positions_ - 1) + max_positions_ - 1",
         "by_distance_.data() + head * (2 * max_positions_ - 1) + max_positions_"),
    ],
    "kernels/cpu/encoder/smoothing_factors.cc": [
        ("std::max(square, 1e-12f), «-0.25f»", "-0.5f"),
        ("(value[token] - mean) * «kAttendedDistance»", "10.0f"),
        ("values[«i / head_dim / group * head_dim» + i", "i / head_dim * head_dim"),
        ("weights.segment_embedding.row(«0»)", "1"),
        ("(learned ? position[i] : 0)", "0"),
        ("weighted[token] = inner[i][token] * «weights[expert][token]»;", "1"),
        ("«config.norm_kind == NormKind::kLayer» && i <", "false"),
    ],
    "kernels/cpu/matmul/packed_linear.cc": [
        ("turned.data()[«j * k + i»]", "i * n + j"),
        ("scale * static_cast<float>(sum)", "scale * static_cast<float>(sum - 1)"),
        ("outlier.output == j", "outlier.output == j + 1"),
        ("place(from, turn, «2 * from + offset»)", "from + offset"),
    ],
    "kernels/cpu/matmul/matmul.cc": [
        ("if («level.matmul == MatmulChoice::kOneDnn») {", "false"),
    ],
    "kernels/cpu/matmul/onednn_matmul.cc": [
        ("RoundUp(options.k, kTileValues)", "options.k"),
        ("if («!Begins(desc, \"brg\") && !IsAvx2Gemm(desc)») {", "false"),
        ("Begins(desc, «\"gemm:jit:f32\"»)", '"gemm:jit"'),
    ],
    "kernels/cpu/simd/amx/amx_matmul.inc": [
        ("ragged_(«args.x_bytes % kAmxStepBytes != 0»)", "false"),
        ("if («columns == (two_columns ? kAmxBlock : kTile)»)", "true"),
        ("Load(bias, FirstLanesOf(columns))", "Load(bias)"),
        ("LoadTile<0>(bias_, «kSameRow»);", "64"),
        ("Row sums_of_row(args.terms, «first_row + row», column", "row"),
        ("column / kAmxBlock * «Output::kBlockBytes»", "128"),
    ],
    "kernels/cpu/simd/amx/amx_outputs.inc": [
        (".column_offsets = «terms.column_offsets + column»", "terms.column_offsets"),
        ("«Add(Load(values, left), Row::At(row, 0, left))»", "Row::At(row, 0, left)"),
        ("StoreAt(y, 0, «gate», up)", "up"),
    ],
    "kernels/cpu/simd/attention/amx_attention.inc": [
        ("block != packed_block_", "packed_block_ < 0"),
        ("return «wrong == 0»;", "true"),
        ("if («(empty >> r & 1) != 0») ZeroRows", "false"),
        ("«(wrong & ((1u << rows) - 1)) << row»", "(wrong & ((1u << rows) - 1))"),
        ("(failed >> r & 1) != 0 && finite ? «largest» : 0", "0"),
    ],
    "kernels/cpu/simd/attention/amx_attention_buffers.inc": [
        ("return «one_block ? 0 : row»;", "0"),
        ("«place % kStepValues» / 2 * kLanes", "place"),
    ],
    "kernels/cpu/simd/attention/amx_attention_steps.inc": [
        ("const bool first = «span.first && key == span.key»;", "span.first"),
        ("if («v == vectors - 1») taken[v] = Select", "false"),
        ("buffers.keys + «place * buffers.steps» * kStepValues", "place"),
    ],
    "kernels/cpu/simd/attention/amx_packed_dots.inc": [
        ("«args.begin / kTile * kTile»", "args.begin"),
    ],
    "kernels/cpu/matmul/tile_matmul.cc": [
        ("options().n % kernels_.panel_columns != 0", "false"),
        ("«options.output == MatmulOutput::kGated && options.n % tiles.panel_columns != 0»", "false"),
        ("if (MultiplyOf(tiles, options) == nullptr || «IsBiasedSum(options)»)", "false"),
    ],
    "kernels/cpu/simd/vector_math.inc": [
        ("Min(Mul(x, Set(0.70710678118654752f)), Set(3.95f))", "Min(Mul(x, Set(0.70710678118654752f)), Set(2.0f))"),
        ("Max(«Set(-4.3f)», x);", "Set(-6.0f)"),
        ("Mul(Mul(x, x), Mul(x, Set(0.044715f)))", "Mul(x, Mul(x, Set(0.044715f)))"),
        ("Relu(F32 x) { return «Max(Set(0), x)»; }", "Max(x, Set(0))"),
    ],
    "kernels/cpu/simd/row_kernels.inc": [
        ("squares / count + norm.epsilon", "squares / count"),
        ("Fma(p.minus_zero_point, Load(p.column_offsets + i, mask), sums)", "sums"),
    ],
    "kernels/cpu/simd/attention/attention_tiles.inc": [
        ("AtMost(query + args.keys_after + 1, args.keys)", "AtMost(query + args.keys_after, args.keys)"),
        ("args.bias != nullptr || !(args.scale > 0)", "args.bias != nullptr"),
        ("if (!tile.first) tile.maximum = Max(tile.maximum, before);", ""),
        ("Max(tile.maximum, Set(-__FLT_MAX__))", "tile.maximum"),
        ("if («__builtin_fabsf(shifts[r]) < kLargeExponent») continue;", "true"),
        ("if (!tile.first) tile.rescale[r] = rescale[r];", ""),
        ("const F32 rescale = «Set(tile.rescale[r])»;", "Set(1)"),
    ],
    "kernels/cpu/simd/attention/attention.inc": [
        ("if (tile.inverse[r] == __builtin_inff()) ZeroRows(args, tile.query + r, tile.query + r + 1);", ""),
        ("ZeroRows(args, AtLeast(blind, begin), end);", ""),
        ("«args.allowed[key] != 0») ++key", "true"),
    ],
    "kernels/cpu/simd/attention/packed_dots.inc": [
        ("int64_t panel = «args.begin / kPanel * kPanel»;", "(args.begin + kPanel - 1) / kPanel * kPanel"),
        ("const int64_t width = PanelWidth(panel, «padded»);", "padded + kPanel"),
    ],
    "kernels/cpu/simd/attention/attention_weights.inc": [
        ("sum == 0 ? 1.0f : sum", "sum"),
    ],
    "kernels/cpu/simd/matmul_tiles.inc": [
        ("«static_cast<const char*>(args.x) + part.begin * 4»;", "static_cast<const char*>(args.x)"),
        ("«weight + column * args.groups + part.begin * kPanel»;", "weight + column * args.groups"),
        ("sums[r][v] = «Load(reinterpret_cast<const float*>(y + r * args.y_bytes) + at, real)»;", "Set(0)"),
        ("{.begin = «part * args.groups / parts», .end = (part + 1)", "0"),
    ],
}
EQUIVALENT = [
    ("kernels/cpu/simd/attention/amx_attention_buffers.inc",
     "if («column + kTile < buffers.columns») Store", "true",
     "the next step's values are written there later, or the scores, which follow in the scratch"),
]
