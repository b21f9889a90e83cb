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
    "client/cli/commands/load.cc": ["client_cli_test"],
    "client/cli/format.cc": ["client_cli_test"],
    "client/cli/input.cc": ["client_cli_test"],
    "client/cli/files/npy.cc": ["client_cli_test"],
}
MUTANTS = {
    "client/client.cc": [
        ("response.sequences_size() == asked", "true"),
        ("embeddings.shape[0] + rows.shape[0]", "rows.shape[0]"),
        ("models.size() > 1", "false"),
        ("SetTimeout(impl_->options.timeout, call->context);", ""),
    ],
    "client/ordered_encoder.cc": [
        ("next_bytes_ = 0;", ""),
        ("next_bytes_ + bytes > limits_.max_bytes", "next_bytes_ + bytes >= limits_.max_bytes"),
        ("if (first == 0) return error;", "return error;"),
        ('first, " to ", «taken_ - 1»', "taken_"),
        ("ids->token_ids.size() * sizeof(int32_t)", "ids->token_ids.size()"),
    ],
    "client/channel.cc": [
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
        ("ok && InWindow(finished)", "ok && InWindow(intended)"),
        ("counts_.cut_off += «intended >= begin_ ? 1 : 0»;", "1"),
        ("!interrupted_ && InWindow(intended)", "InWindow(intended)"),
    ],
    "client/load/driver.cc": [
        ("num_measured_++ < plan_.max_requests", "num_measured_++ <= plan_.max_requests"),
        ("now < plan_.warmup || plan_.max_requests == 0", "plan_.max_requests == 0"),
        ("outstanding_ >= plan_.max_outstanding", "outstanding_ > plan_.max_outstanding"),
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
        ("spec.vocab - 1", "spec.vocab"),
    ],
    "client/load/random.h": [
        ("-std::log1p(-Uniform()) / rate", "-std::log1p(-Uniform())"),
    ],
    "client/cli/commands/load.cc": [
        ("summary.errors.size() == 1", "true"),
        ("open ? max_outstanding_ : plan_.connections * concurrency_", "open ? max_outstanding_ : concurrency_"),
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
}
