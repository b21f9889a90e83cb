# SPDX-License-Identifier: Apache-2.0
TESTS = ["server_metrics_test"]
MUTANTS = {
    "server/metrics/process_metrics.cc": [
        ("(*user + *system) / ticks", "*user / ticks"),
        ("int64_t open = «-1»;", "0"),
        ("*boot + *start / ticks", "*start / ticks"),
        ("*pages * static_cast<double>(sysconf(_SC_PAGESIZE))", "*pages"),
        ("text_.rfind(')')", "text_.find(')')"),
    ],
    "server/metrics/request_counters.cc": [
        ("number < kNumCodes ? number : static_cast<size_t>(absl::StatusCode::kUnknown)",
         "std::min<size_t>(number, kNumCodes - 1)"),
    ],
    "server/metrics/model_series.cc": [
        ("index + 1 < kReasonNames.size() && reason != kReasonNames[index]",
         "index + 2 < kReasonNames.size() && reason != kReasonNames[index]"),
        ("padding_tokens_.Increment(static_cast<double>(padding));",
         "padding_tokens_.Increment(static_cast<double>(valid));"),
        ("batch_requests_.Observe(static_cast<double>(requests));",
         "batch_requests_.Observe(static_cast<double>(tokens));"),
        ("if (kind.has_value() && kMethods[RowIndex(method)].model != *kind) return;", ""),
        ("if («method.model != kind || method.series != SeriesBegin::kWithModel») continue;", "method.model != kind"),
        ("static_cast<double>(loaded.arena_bytes)", "static_cast<double>(loaded.weight_bytes)"),
        ("queue_requests_.Increment(static_cast<double>(requests));", ""),
    ],
    "server/metrics/server_metrics.cc": [
        ("impl_->refused[RowIndex(reason)]->Increment();", "impl_->refused[0]->Increment();"),
    ],
}
