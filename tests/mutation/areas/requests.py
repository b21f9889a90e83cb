# SPDX-License-Identifier: Apache-2.0
TESTS = ["requests_test", "request_limits_test", "encoder_service_test", "kserve_service_test",
         "attention_service_test"]
FILE_TESTS = {
    "server/requests/byte_budget.cc": ["requests_test", "request_limits_test"],
    "server/requests/memory_budgets.cc": ["requests_test", "request_limits_test"],
}
MUTANTS = {
    "server/requests/byte_budget.cc": [
        ("bytes <= limit - taken_", "bytes < limit - taken_"),
        ("use == Use::kError ? reserve : 0", "reserve"),
        ("SetRetryAfter(full, kRetryAfter);", ""),
        ("if (options_.on_refused) options_.on_refused();", ""),
        ("std::max(kLeastReserve, options_.limit / 16)", "options_.limit / 16"),
    ],
    "server/requests/call_state.cc": [
        ("if (cancelled_meanwhile) batcher->Cancel(id);", ""),
        ("request_ = ByteBudget::Share();", ""),
        ("if (on_admitted_) on_admitted_(bytes);", ""),
    ],
    "server/requests/encode_run.cc": [
        ("metrics.ObserveSequence(«tokens»);", "sequence.len()"),
        ("all.padding += sequence.len() - tokens;", "all.padding += sequence.len();"),
        ("sequence.unmasked_tokens() > 0", "true"),
        ("ATTENDANT_RETURN_IF_ERROR(AcquireRequest(sequence_bytes_));", ""),
    ],
    "server/requests/encode_types.cc": [
        ("key < len && !sequence.masked(query)", "key < len"),
        ("std::fill(row.begin(), row.end(), 0.0f);", ""),
    ],
    "server/requests/encode_validation.cc": [
        ("Size(input.sequences) > limits.max_request_sequences",
         "Size(input.sequences) >= limits.max_request_sequences"),
        ("input.dims <= model.config().hidden", "input.dims < model.config().hidden"),
        ("truncation != Truncation::kRight", "truncation == Truncation::kNone"),
        ("output.outputs.dims + labels + output.layers.hidden_values(len)", "output.outputs.dims + labels"),
        ("pending.priority = input.priority;", ""),
        ("input.normalize.value_or(model.sentence.normalize)", "input.normalize.value_or(true)"),
    ],
    "server/requests/memory_budgets.cc": [
        ("requests.whole = &requests_;", ""),
    ],
    "server/requests/request_run.cc": [
        ("kRequestBytes + bytes", "bytes"),
        ("SteadyNow() + kClocksDiffer < deadline", "true"),
        ("pending->deadline = run->call_.deadline;", ""),
        ("model_->metrics->CountRejected(RejectReasonName(RejectReason::kDeadline));", ""),
        ("times_.queue = result->queue;", "times_.queue = result->compute;"),
        ("metrics.ObservePhase(call_.method, Phase::kTotal, times_.total());", ""),
        ("metrics.ObservePhase(call_.method, Phase::kQueue, «times_.queue»);", "times_.compute"),
        ("if (!status.ok()) dependencies_.metrics.CountRefused(Refusal::kMessage);", ""),
        ("if (metrics != nullptr) metrics->CountRejected(MemoryBudgets::kRejected);", ""),
        ("ATTENDANT_RETURN_IF_ERROR(AcquireRequest(*memory_bytes));", ""),
        ("message_bytes <= kInlineMessageBytes", "true"),
    ],
}
