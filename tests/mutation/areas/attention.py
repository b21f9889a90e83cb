# SPDX-License-Identifier: Apache-2.0
TESTS = ["attention_test:-Kinds/ManySequencesTest.*:ManySequences*:Kinds/ExactAttentionTest.*",
         "attention_test:Kinds/ExactAttentionTest.*"]
MUTANTS = {
    "kernels/attention/exact/exact_attention.cc": [
        ("if (averaged) piece.head_end = call.query.heads;", ""),
        ("1.0f / static_cast<float>(heads)", "1.0f"),
    ],
    "kernels/attention/exact/mask_args.cc": [
        ("in_rows && tensor.type != MaskTensor::Type::kBf16", "tensor.type != MaskTensor::Type::kBf16"),
        ("call.mask.keys.data() + call.keys.start(sequence)", "call.mask.keys.data()"),
    ],
    "kernels/attention/exact/strided.cc": [
        ("if (call_.mask.causal) args.keys_after = summaries_;", ""),
    ],
    "kernels/attention/mask.cc": [
        ("(sequence % dims[0]) * dims[1] * dims[2] * dims[3]", "(sequence % dims[0]) * dims[2] * dims[3]"),
        ("(head % dims[1]) * dims[2] * dims[3]", "0"),
        ("mask_.window < end - query - 1", "mask_.window < end - query - 2"),
    ],
    "kernels/attention/positions.cc": [
        ("const double next = «sine * rate_cosine + cosine * rate_sine»;", "sine"),
        ("options.interleaved ? 1 : pairs", "options.interleaved ? 1 : operand.rows.dim / 2"),
    ],
    "kernels/attention/sequences.cc": [
        ("if (a.len(i) != b.len(i)) return false;", ""),
    ],
    "kernels/attention/check_call.cc": [
        ("key_mask != 0 && key_mask != call.keys.tokens()", "key_mask != 0 && key_mask < call.keys.tokens()"),
        ("tensor.dims[i] == full[i] || tensor.dims[i] == 1", "tensor.dims[i] <= full[i]"),
        ("product > kMaxElements / factor", "product > kMaxElements / factor + 1"),
        ("if («std::isfinite(slope)») continue;", "true"),
        ("call.need_weights == WeightsWanted::kPerHead ? score_heads : 1", "score_heads"),
    ],
    "kernels/attention/scored/linear_sums.cc": [
        ("std::min(block, std::max<int64_t>(Blocks(keys), 1)) - 1",
         "std::min(block, std::max<int64_t>(Blocks(keys), 1)) - (block > 1 ? 2 : 1)"),
        ("for (int64_t i = «r + 1»; i < own; ++i) pieces.scores", "r + 2"),
        ("total == 0 ? 0 : 1 / total", "1 / total"),
        ("if (mask[i] == 0) std::fill_n(rows + i * dim, dim, 0.0f);", ""),
    ],
    "kernels/attention/scored/linformer.cc": [
        ("if (mask_ == nullptr) return «first < keys_»;", "first <= keys_"),
        ("key.dim(1) < call.keys.max_len()", "key.dim(1) < call.keys.max_len() - 1"),
        ("const int64_t heads = «call.query.heads», projected = projections.projected();", "1"),
        ("if (mask_[i] != 0 && (key[i] != 0 || value[i] != 0)) return true;",
         "if (mask_[i] != 0 && key[i] != 0) return true;"),
    ],
    "kernels/attention/scored/scored_attention.cc": [
        ("if (block_flags[blocks + b] != 0) return false;", ""),
        ("std::fill(scores + end, scores + block.end, 0.0f);", ""),
    ],
    "kernels/attention/modules/transformer.cc": [
        ("threads * of_thread.used_bytes()", "of_thread.used_bytes()"),
    ],
}
