# SPDX-License-Identifier: Apache-2.0
TESTS = ["flag_parser_test", "flags_test"]
FILE_TESTS = {
    "server/threads/delayed_call.cc": ["threads_test"],
    "server/threads/task_pool.cc": ["threads_test"],
    "server/threads/thread_room.cc": ["threads_test"],
}
MUTANTS = {
    "client/flags/flag_parser.h": [
        ("*value >= range.low && *value <= range.high", "*value >= range.low && *value < range.high"),
    ],
    "client/flags/flag_parser.cc": [
        ('flags_end = flags_end || arg == "--";', ""),
        ("column + 1 + word.size() > kHelpWidth", "column + word.size() > kHelpWidth + 1"),
        ('!flags_end && rest != "-" && absl::StartsWith(rest, "-")', '!flags_end && absl::StartsWith(rest, "-")'),
        ("*value <= absl::ZeroDuration()", "*value < absl::ZeroDuration()"),
    ],
    "server/flags.cc": [
        ("value >= least", "value > least"),
        ('CheckLeast("max_queued_tokens", flags.max_queued_tokens, «flags.max_batch_tokens»)', "int64_t{0}"),
        ("!flags.tls_client_ca.empty() && flags.tls_cert.empty()", "false"),
        ("flags.tls_cert.empty() != flags.tls_key.empty()", "flags.tls_cert.empty() && !flags.tls_key.empty()"),
        ("flags.max_batch_tokens != 0", "false"),
        ("flags.help || flags.version || flags.help_markdown", "flags.help || flags.version"),
    ],
    "server/process.cc": [
        ("if (name.front() == '@') address.sun_path[0] = '\\0';", ""),
        ("std::signal(SIGXFSZ, SIG_IGN);", ""),
        ("if (hangup.sa_handler != SIG_IGN) sigaddset(&signals_, SIGHUP);", "sigaddset(&signals_, SIGHUP);"),
    ],
    "server/app/app_options.cc": [
        ("budget / 100 * percent", "budget / 100"),
        ("absl::Microseconds(flags.max_queue_delay_us)", "absl::Milliseconds(flags.max_queue_delay_us)"),
        ("std::max(share, kLargest * largest + kFixedBytes)", "share"),
        (".max_priority = «flags.max_priority»", "100"),
        (".max_bytes = «2 * flags.max_request_bytes»", "flags.max_request_bytes"),
        ("absl::Milliseconds(flags.max_priority_wait_ms)", "absl::Microseconds(flags.max_priority_wait_ms)"),
    ],
    "server/app/file_reload.cc": [
        ("changed.ok() && !*changed", "false"),
        ("metrics.SetReloadFailed(file, !status.ok());", "metrics.SetReloadFailed(ReloadedFile::kGrpcTls, !status.ok());"),
    ],
    "server/threads/delayed_call.cc": [
        ("{  // no thread is left\n    «return;»", "throw;"),
        ("thread_.joinable()", "true"),
    ],
    "server/threads/thread_room.cc": [
        ("static_cast<int>(threads.size()) < «count»", "count - 1"),
    ],
    "server/threads/task_pool.cc": [
        ("large_.empty() && running_ == 0", "large_.empty()"),
        ("max_large_(«std::max(threads - 1, 1)»)", "threads"),
        ("large_.front().number < small_.front().number", "false"),
        ("running_large_ -= large ? 1 : 0;", ""),
    ],
}
