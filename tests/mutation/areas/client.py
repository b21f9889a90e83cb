# SPDX-License-Identifier: Apache-2.0
TESTS = ["client_test", "client_load_test", "client_cli_test"]
FILE_TESTS = {
    "client/client.cc": ["client_test", "client_cli_test"],
    "client/ordered_encoder.cc": ["client_test", "client_cli_test"],
    "client/channel.cc": ["client_test", "client_cli_test"],
    "client/attention_wire.cc": ["client_test", "client_cli_test"],
    "client/load/recorder.cc": ["client_load_test", "client_cli_test"],
    "client/load/driver.cc": ["client_load_test", "client_cli_test"],
    "client/load/histogram.cc": ["client_load_test", "client_cli_test"],
    "client/load/lengths.cc": ["client_load_test", "client_cli_test"],
    "client/load/payload.cc": ["client_load_test", "client_cli_test"],
    "client/load/random.h": ["client_load_test", "client_cli_test"],
    "client/load/protocols/grpc_load.cc": ["client_load_test"],
    "client/load/protocols/http/http_caller.cc": ["client_load_test"],
    "client/load/protocols/http/http_load.cc": ["client_load_test"],
    "client/load/protocols/http/kserve_http_request.cc": ["client_load_test"],
    "client/load/protocols/http/kserve_http_target.cc": ["client_load_test"],
    "client/load/protocols/http/tei_http_target.cc": ["client_load_test"],
    "client/load/protocols/request_stream.cc": ["client_load_test"],
    "client/load/protocols/unary_caller.cc": ["client_load_test"],
    "client/load/schedule.cc": ["client_load_test"],
    "client/load/trace.cc": ["client_load_test"],
    "client/load/results/batches.cc": ["client_load_test"],
    "client/load/results/objective.cc": ["client_load_test"],
    "client/load/results/result.cc": ["client_load_test"],
    "client/load/results/hdr_log.cc": ["client_load_test"],
    "client/load/results/rate_search.cc": ["client_load_test"],
    "client/load/results/statistics.cc": ["client_load_test"],
    "client/load/interval_series.cc": ["client_load_test"],
    "client/load/results/comparison.cc": ["client_load_test"],
    "client/cli/load/load.cc": ["client_cli_test"],
    "client/cli/load/load_setup.cc": ["client_cli_test"],
    "client/cli/format.cc": ["client_cli_test"],
    "client/cli/input.cc": ["client_cli_test"],
    "client/cli/files/npy.cc": ["client_cli_test"],
}
MUTANTS = {
    "client/client.cc": [
        ("response.sequences_size() == asked", "true"),
        ("names.size() > 1", "false"),
        ("names.insert(model.name)", "names.insert(absl::StrCat(model.name, model.version))"),
        ("SetTimeout(impl_->options.timeout, call->context);", ""),
    ],
    "client/ordered_encoder.cc": [
        ("next_bytes_ = 0;", ""),
        ("all.shape[0] += rows.shape[0];", "all.shape[0] = rows.shape[0];"),
        ("all.shape[1] != rows.shape[1]", "false"),
        ("next_bytes_ + bytes > limits_.max_bytes", "next_bytes_ + bytes >= limits_.max_bytes"),
        ("if (first == 0) return error;", "return error;"),
        ('first, " to ", «taken_ - 1»', "taken_"),
        ("ids->token_ids.size() * sizeof(int32_t)", "ids->token_ids.size()"),
    ],
    "client/channel.cc": [
        ("contexts_.empty() && ending_ == 0", "contexts_.empty()"),
        ("if (IsLoopback(options.target)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);", ""),
        ("!file || contents.str().empty()", "!file"),
        ("arguments.SetMaxReceiveMessageSize(-1);", ""),
    ],
    "client/attention_wire.cc": [
        ("rest % static_cast<size_t>(dim) != 0", "false"),
        ("proto.set_priority(request.priority);", ""),
        ("offer.max_attention_bytes = limits.max_attention_bytes();",
         "offer.max_attention_bytes = limits.max_attention_tokens();"),
    ],
    "client/load/recorder.cc": [
        ("ok && InWindow(times.finished)", "ok && InWindow(times.intended)"),
        ("counts_.cut_off += «times.intended >= begin_ ? 1 : 0»;", "1"),
        ("Nanoseconds(times.finished - times.sent)", "response_ns"),
    ],
    "client/load/protocols/grpc_load.cc": [
        ("result.sequences = request.sequences;", ""),
        ("result.code != grpc::StatusCode::OK", "false"),
    ],
    "client/load/protocols/http/http_caller.cc": [
        ("if (request.tokens > 0) result.tokens = request.tokens;", ""),
        (".headers = «request.headers»", "absl::string_view()"),
        ("result.sequences == request.sequences", "true"),
    ],
    "client/load/protocols/http/http_load.cc": [
        ("body.rfind(field)", "body.find(field)"),
        ('absl::ConsumePrefix(&value, ":")', "true"),
        ("ATTENDANT_RETURN_IF_ERROR(Probe(*caller));", ""),
        ("if (answer.ok()) ATTENDANT_RETURN_IF_ERROR(answer->body_status);", ""),
    ],
    "client/load/protocols/http/kserve_http_request.cc": [
        ("at += sizeof(length);", ""),
        ("bytes += raw;", ""),
        ("body[\"parameters\"][\"binary_data_output\"] = true;", ""),
    ],
    "client/load/protocols/http/kserve_http_target.cc": [
        ("!HasNoPath(configured.code)", "true"),
        ("CountSequences(body)", "result.sequences"),
        ("ATTENDANT_RETURN_IF_ERROR(StatusOf(described));", ""),
        ("options.ignore_unknown_fields = true;", ""),
        ("if («!spec.json_tensors») {", "false"),
        ("PathPart(spec.model)", "spec.model"),
    ],
    "client/load/protocols/http/tei_http_target.cc": [
        ("payloads.lengths.Limit(server.max_tokens);", ""),
    ],
    "client/load/protocols/request_stream.cc": [
        ("id_field == 0", "false"),
        ("if («status.ok()») {", "false"),
        ("if («!fault.empty()») return {", "false"),
        ("if (answered.done == nullptr) return;", ""),
        ("auto found = «outstanding_.begin()»;", "outstanding_.end()"),
    ],
    "client/load/protocols/unary_caller.cc": [
        ("call->status.ok() && «!load_.unary.read(call->answer, answer)»",
         "load_.unary.read(call->answer, answer)"),
    ],
    "client/load/driver.cc": [
        ("num_measured_++ < plan_.max_requests", "num_measured_++ <= plan_.max_requests"),
        ("now < plan_.warmup || plan_.max_requests == 0", "plan_.max_requests == 0"),
        ("outstanding_ < plan_.max_outstanding", "outstanding_ <= plan_.max_outstanding"),
        ("result.code != grpc::StatusCode::UNAVAILABLE", "true"),
        ("slot % plan_.connections", "0"),
    ],
    "client/load/histogram.cc": [
        ("std::ceil(percent / 100 * static_cast<double>(count_))",
         "std::floor(percent / 100 * static_cast<double>(count_))"),
        ("low + (int64_t{1} << shift) / 2", "low"),
    ],
    "client/load/lengths.cc": [
        ("high_ = std::min(high_, limit);", ""),
        ("lengths.high_ > kMaxLength", "false"),
    ],
    "client/load/payload.cc": [
        ("vocab - 1", "vocab"),
    ],
    "client/load/random.h": [
        ("-std::log1p(-Uniform()) / rate", "-std::log1p(-Uniform())"),
    ],
    "client/cli/load/load.cc": [
        ("summary.errors.size() == 1", "true"),
    ],
    "client/cli/load/load_setup.cc": [
        ("open ? max_outstanding_ : plan.connections * concurrency_", "open ? max_outstanding_ : concurrency_"),
    ],
    "client/load/schedule.cc": [
        ("requests_per_s / static_cast<double>(burst)", "requests_per_s"),
    ],
    "client/load/trace.cc": [
        ("entry.time -= first", "entry.time -= absl::ZeroDuration()"),
    ],
    "client/load/results/batches.cc": [
        ("fewest < figure.min_requests", "false"),
        ("std::min(intervals.size(), in_window)", "intervals.size()"),
        ("fewest_offered == 0", "false"),
    ],
    "client/load/results/objective.cc": [
        ("answered + static_cast<double>(unanswered)", "answered"),
        ("late == summary.errors.end() ? 0 : late->second.count", "0"),
        ("percent ? number / 100 : number", "number"),
    ],
    "client/load/results/result.cc": [
        ("lag > kNegligibleLag", "true"),
    ],
    "client/load/results/hdr_log.cc": [
        ("if (zeros > 0) AppendZigZag(-zeros, out);", ""),
        ("bytes < 9", "bytes < 2"),
    ],
    "client/load/results/comparison.cc": [
        ("(difference->value > 0) == (name == kThroughput)", "difference->value > 0"),
        ('requests["failed"].get<double>() + requests["not_sent"].get<double>()', 'requests["failed"].get<double>()'),
        ("if (!is_share()) return percent;", "return percent;"),
    ],
    "client/cli/format.cc": [
        ("points++ + 1 == width", "points++ == width"),
        ("value < 0 ? 1 : 0", "0"),
        ('values.size() > shown ? " … ]" : " ]"', 'values.size() >= shown ? " … ]" : " ]"'),
    ],
    "client/cli/input.cc": [
        ("sequence.attention_mask.size() != sequence.token_ids.size()",
         "sequence.attention_mask.size() < sequence.token_ids.size()"),
    ],
    "client/cli/files/npy.cc": [
        ("offset = offset * shape[d] + index[d]", "offset = offset * shape[d] + index[shape.size() - 1 - d]"),
        ("length > rest.size()", "false"),
        ("major == 1 ? 2 : 4", "2"),
    ],
    "client/load/interval_series.cc": [
        ("sum.failed += next.failed;", ""),
        ("sum.offered += next.offered;", ""),
        ("sum.response_ns.Add(next.response_ns);", ""),
    ],
    "client/load/results/rate_search.cc": [
        ("missed_ <= kPrecision * kept_", "missed_ <= kept_"),
        ("rate_ < kLowestRate", "false"),
        ("rate_ > kHighestRate", "false"),
    ],
    "client/load/results/statistics.cc": [
        ("Student975(moments.count - 1)", "Student975(moments.count)"),
        ("right.mean - left.mean", "left.mean - right.mean"),
        ("left.error_squared + right.error_squared", "left.error_squared"),
    ],
}
