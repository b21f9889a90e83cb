# SPDX-License-Identifier: Apache-2.0
TESTS = ["tracing_test", "access_test"]
FILE_TESTS = {
    "server/tracing/request_spans.cc": ["tracing_test"],
    "server/tracing/sampler.cc": ["tracing_test"],
    "server/tracing/otlp_settings.cc": ["tracing_test"],
    "server/tracing/export/tracer.cc": ["tracing_test"],
    "server/tracing/export/retry.cc": ["tracing_test"],
    "server/http/client/otlp_poster.cc": ["tracing_test"],
    "client/address/host_port.cc": ["host_port_test"],
    "client/http/http_client.cc": ["http_client_test", "client_load_test"],
    "client/http/http_options.cc": ["http_client_test"],
    "server/access/call_gate.cc": ["access_test"],
}
MUTANTS = {
    "server/tracing/request_spans.cc": [
        ("request.submitted - request.tokenize", "request.submitted"),
        ("last = std::max(last, begin + batch.compute);", "last = std::max(last, begin);"),
        ("if (batch.told) spans.push_back(BatchSpan(request, batch));", "spans.push_back(BatchSpan(request, batch));"),
    ],
    "server/tracing/sampler.cc": [
        ("follows_caller_ && caller.has_value()", "caller.has_value()"),
        ("trace_low < bound_", "trace_low <= bound_"),
    ],
    "server/tracing/otlp_settings.cc": [
        ("if (IsOff()) return;", ""),
    ],
    "server/tracing/export/tracer.cc": [
        ("queued_spans_ + spans <= options_.max_queued_spans", "queued_spans_ <= options_.max_queued_spans"),
        ("queued_spans_ -= spans;", ""),
        ("attempt < kMaxExportAttempts", "attempt <= kMaxExportAttempts"),
        ("if (!flushing && Flushing()) return true;", ""),
        ("transport_->Cancel();", ""),
    ],
    "server/tracing/export/retry.cc": [
        ("std::max(delay * (1 - dice / 2), retry_after)", "delay * (1 - dice / 2)"),
    ],
    "server/http/client/otlp_poster.cc": [
        ("cancelled_ = true;", ""),
    ],
    "client/address/host_port.cc": [
        ("number <= 65535", "number < 65535"),
        ("(number > 0 || options.port_zero)", "true"),
        ("bracketed && options.zone", "options.zone"),
        ("bracketed && options.zone", "bracketed"),
        ("!absl::StrContains(text.substr(colon), ']')", "true"),
        ("if (bracketed != absl::StrContains(host, ':')) return std::nullopt;", ""),
    ],
    "client/http/http_client.cc": [
        ("StartTimer(call, timeout);", ""),
        ("!parser.is_done() && buffer.size() > kMaxUnparsedBytes", "false"),
        ("absl::StrCat(head_, «call->content.headers»,", "absl::string_view()"),
        ("«call->connection->buffer.size() == 0»;", "call->connection->buffer.size() < 1000"),
        ("«call->reused && !has_begun» && call->interim_answers == 0", "false"),
    ],
    "client/http/http_options.cc": [
        ("if (std::any_of(header + 1, options.headers.end(), same_name)) continue;", ""),
    ],
    "server/access/call_gate.cc": [
        ("call.key_generation == keys_->generation()", "true"),
        ("call.method.streams ? ids_.Next() : call.trace->span", "call.trace->span"),
        ("if (IsProbe(call.method) && end.code == absl::StatusCode::kOk) return;", ""),
    ],
}
