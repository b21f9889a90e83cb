# SPDX-License-Identifier: Apache-2.0
TESTS = ["backends_heads_test", "token_heads_test"]
FILE_TESTS = {
    "server/requests/outputs/spans.cc": ["requests_test", "encoder_service_test"],
}
MUTANTS = {
    "kernels/cpu/heads/masked_lm_head.cc": [
        ("«std::fill_n(row, head_.vocab(), 0.0f);»", ""),
        ("HeadResult& result = *units_[static_cast<size_t>(«first + index»)]", "index"),
        ("units_[static_cast<size_t>(«begin + index»)], reduced_", "index"),
    ],
    "kernels/cpu/heads/token_rows_head.cc": [
        ("skip_first_ ? 1 : 0", "0"),
        ("input.options->document && Ignored(input.token_ids[static_cast<size_t>(i)])",
         "Ignored(input.token_ids[static_cast<size_t>(i)])"),
        ("if (kept != row) std::copy_n(row, outputs, kept);", ""),
        ("entry.value > 0 && !Ignored(entry.index)", "entry.value > 0"),
        ("if (!options.raw) ApplyActivation(ScoreActivation::kSoftmax, row);",
         "ApplyActivation(ScoreActivation::kSoftmax, row);"),
        ("a.index != b.index ? a.index < b.index : «a.value > b.value»;", "a.value < b.value"),
        ("entries.clear();", ""),
    ],
    "server/requests/outputs/spans.cc": [
        ("first_pooled < len ? first_pooled : 0", "0"),
        ("std::max(span.begin, first_pooled)", "span.begin"),
    ],
}
