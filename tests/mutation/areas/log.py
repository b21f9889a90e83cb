# SPDX-License-Identifier: Apache-2.0
TESTS = ["log_test"]
MUTANTS = {
    "server/log/line_limit.cc": [
        ("now >= end_", "now > end_"),
        ("written_ = 0;", ""),
        ("std::exchange(left_out_, 0)", "left_out_"),
    ],
    "server/log/process_log.cc": [
        ('absl::StartsWith(line->message, "assertion failed")', "false"),
        ("line->severity != GPR_LOG_SEVERITY_ERROR", "line->severity == GPR_LOG_SEVERITY_ERROR"),
        ("if (!left_out.has_value()) return;", ""),
        ("Readable(line->message, kMaxLibraryBytes)", "line->message"),
    ],
}
