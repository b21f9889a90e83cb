# SPDX-License-Identifier: Apache-2.0
TESTS = ["requests_test", "request_limits_test", "encoder_service_test", "kserve_service_test",
         "attention_service_test"]
FILE_TESTS = {
    "server/requests/memory/byte_budget.cc": ["requests_test", "request_limits_test"],
    "server/requests/memory/client_waits.cc": ["requests_test"],
    "server/requests/memory/memory_budgets.cc": ["requests_test", "request_limits_test"],
    "server/requests/request_run.cc": TESTS + ["tei_services_test"],
    "server/requests/tasks.cc": ["request_limits_test"],
    "server/requests/text_runs.cc": ["tei_services_test"],
}
MUTANTS = {
    "server/requests/memory/byte_budget.cc": [
        ("bytes <= limit - taken_", "bytes < limit - taken_"),
        ("use == Use::kError ? reserve : 0", "reserve"),
        ("SetRetryAfter(full, kRetryAfter);", ""),
        ("if (options_.on_refused) options_.on_refused();", ""),
        ("std::max(kLeastReserve, options_.limit / 16)", "options_.limit / 16"),
    ],
    "server/requests/memory/client_waits.cc": [
        ("waits.bytes_ + bytes_ > waits.room()", "waits.bytes_ + bytes_ >= waits.room()"),
        ("waits.bytes_ > 0 && «waits.bytes_ + bytes_ > waits.room()»", "waits.bytes_ > waits.room()"),
        ("if (waits_ || gave_way_) return;", "if (waits_) return;"),
        ("if (&from != &to) to.splice(to.end(), from, connection.place_);", ""),
        ("oldest.gave_way_ = true;", ""),
    ],
    "server/requests/call_state.cc": [
        ("  }\n  «on_cancel();»", ""),
        ("request_ = ByteBudget::Share();", ""),
        ("if (on_admitted_) on_admitted_(bytes);", ""),
    ],
    "server/requests/encode_run.cc": [
        ("metrics.ObserveSequence(«tokens»);", "sequence.len()"),
        ("all.padding += sequence.len() - tokens;", "all.padding += sequence.len();"),
        ("sequence.unmasked_tokens() > 0", "true"),
        ("ATTENDANT_RETURN_IF_ERROR(AcquireRequest(sequence_bytes_));", ""),
        ("bytes += pair->first->size() + pair->second.size();", "bytes += pair->second.size();"),
    ],
    "server/requests/request_run.h": [
        ("times_.arrival = call_.arrival;", "times_.arrival = SteadyNow();"),
    ],
    "server/requests/encode_types.cc": [
        ("key < len && !sequence.masked(query)", "key < len"),
        ("std::fill(row.begin(), row.end(), 0.0f);", ""),
    ],
    "server/requests/encode_validation.cc": [
        ("sequences > limits.max_request_sequences", "sequences >= limits.max_request_sequences"),
        ("input.dims <= embedding", "input.dims < embedding"),
        ("std::max(output.outputs.dims, output.pooled_width)", "int64_t{0}"),
        ("request_.priority = input_.priority;", ""),
        ("input.normalize.value_or(sentence.normalize)", "input.normalize.value_or(true)"),
        ("unmasked.head_ns = CountHeadNs(model_, work_, unmasked);", ""),
        ("static_cast<int64_t>(i) < sequence.attended_tokens", "false"),
    ],
    "server/requests/tasks.cc": [
        ("sequence.only_task >= 0 && static_cast<size_t>(sequence.only_task) != i", "false"),
        ("if («task.options.kind == TaskKind::kFillMask») {", "false"),
        ("nanoseconds += rows * model.heads.row_ns[task.head];", ""),
        ("options.kind == TaskKind::kSparse && options.top_k == 0", "options.top_k == 0"),
        ("options.kind == TaskKind::kSparse && options.top_k == 0", "options.kind == TaskKind::kSparse"),
        ("prompt->form.has_value() && prompt->form->document", "prompt->form.has_value()"),
    ],
    "server/requests/outputs/late_scores.cc": [
        ("output.vector_bytes <= limits.max_response_bytes", "true"),
        ("if (is_new) texts.emplace_back(*pair.first);", "texts.emplace_back(*pair.first);"),
        ("is_query ? kQueryTask : kDocumentTask", "kQueryTask"),
        ("index >= input.num_queries()", "true"),
        ("!input.tasks.empty()", "false"),
    ],
    "server/requests/encode_types.h": [
        ("pooled || wants_spans()", "pooled"),
        ("last_hidden_state || !layers.hidden_layers.empty()", "last_hidden_state"),
        ("|| «attention_weights» || word_weights", "false"),
    ],
    "server/requests/outputs/sequence_strings.cc": [
        ("if (!output.token_strings) return 0;", ""),
        ("if (!output.token_strings) return;", ""),
        ("kStringBytes + static_cast<int64_t>(StringOf(model, id).size())", "kStringBytes"),
    ],
    "server/requests/outputs/spans.cc": [
        ("span.begin < 0 || span.end > len", "span.end > len"),
        ("span.begin < 0 || span.end > len", "span.begin < 0"),
        ("tokens <= kMaxSpanReads * len", "true"),
        ("span.begin < span.end", "span.begin <= span.end"),
        ("!sequence.masked(static_cast<size_t>(i))", "true"),
    ],
    "server/requests/outputs/word_weights.cc": [
        ("output.layers.attention_queries = 1;", ""),
        ("model.config().layers - 1", "0"),
        ("value /= static_cast<double>(heads)", "value /= 1"),
        ("if (sequence.masked(i)) continue;", ""),
        ("if (tokenizer.IsSpecial(sequence.token_ids[i])) continue;", ""),
    ],
    "server/requests/text_runs.cc": [
        ("(limits().max_response_bytes - bytes) / TokenBytes({})", "int64_t{1} << 30"),
        ("ATTENDANT_RETURN_IF_ERROR(CheckAnswer(index, bytes));", ""),
    ],
    "server/requests/read_sequence.cc": [
        ("!left && truncation != Truncation::kRight", "truncation == Truncation::kNone"),
    ],
    "server/requests/formats/embedding_format.cc": [
        ("«largest == 0»", "largest < 0.5f"),
        ("(dims + 7) / 8", "dims / 8"),
        ("values[i] > 0", "values[i] >= 0"),
    ],
    "server/requests/memory/memory_budgets.cc": [
        ("requests.whole = &requests_;", ""),
        ("streams.whole = &streams_;", ""),
    ],
    "server/requests/model_waits.cc": [
        ("expiries_.erase({found->second.deadline, id});", ""),
        ("if (place == expiries_.begin()) changed_.Signal();", ""),
    ],
    "server/requests/request_run.cc": [
        ("state->SetWaiting(waits, id);", ""),
        ("kRequestBytes + bytes", "bytes"),
        ("«status.ok()» ? DecodeMessage(std::move(run)) : run->EndEarly(status)", "true"),
        ("!EndsByDeadline(deadline, SteadyNow())", "true"),
        ("if (absl::IsCancelled(end)) CountRejected(RejectReasonName(RejectReason::kCancelled));", ""),
        ("request->deadline = run->call_.deadline;", ""),
        ("model_->metrics->CountRejected(RejectReasonName(RejectReason::kDeadline));", ""),
        ("times_.queue = finished.queue;", "times_.queue = finished.compute;"),
        ("metrics.ObservePhase(call_.method, Phase::kTotal, times_.total());", ""),
        ("metrics.ObservePhase(call_.method, Phase::kQueue, «times_.queue»);", "times_.compute"),
        ("if («absl::IsInvalidArgument(status)») dependencies_", "false"),
        ("if (absl::IsResourceExhausted(status)) return CountRejected(status);", ""),
        ("if (!status.ok()) CountRejected(MemoryBudgets::kRejected);", ""),
        ("ATTENDANT_RETURN_IF_ERROR(AcquireRequest(*memory_bytes));", ""),
        ("run->call_.state->response_bytes() <= kSmallAnswerBytes", "true"),
        ("PastDeadline(\"the deadline passed before the answer was written\")", "absl::OkStatus()"),
        ("run->is_large_ || bytes <= kInlineBytes", "true"),
        ("run->is_large_ || bytes <= kInlineBytes", "bytes <= kInlineBytes"),
        ("const int64_t parse_bytes = «run->call_.message->parse_bytes()»;", "bytes"),
    ],
}

EQUIVALENT = [
    ("server/requests/formats/embedding_format.cc", "if (largest == 0) return embedding;", "",
     "0 / 0 is undefined as an integer; on x86 it is 0"),
]
