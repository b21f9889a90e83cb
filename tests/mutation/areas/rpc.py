# SPDX-License-Identifier: Apache-2.0
TESTS = ["rpc_parts_test", "encoder_service_test", "kserve_service_test", "attention_service_test",
         "request_limits_test"]
FILE_TESTS = {
    "server/rpc/kserve_service.cc": ["kserve_service_test", "request_limits_test"],
    "server/rpc/scan/wire_scan.cc": ["rpc_parts_test", "encoder_service_test", "kserve_service_test"],
    "server/rpc/health_service.cc": ["health_service_test", "drain_test"],
}
MUTANTS = {
    "server/rpc/call/collecting_call.h": [
        ("if («!incoming().context.IsCancelled()») key_ =", "true"),
    ],
    "server/rpc/call/answer_stream.h": [
        ("if (!key.ok()) closing_ = key;", ""),
        ("reading_ == nullptr && «undecided_ == 0 && !half_closed_»", "!half_closed_"),
        ("if (!std::exchange(exchange->admitted, true)) --undecided_;", "exchange->admitted = true;"),
        ("exchange->state->ReleaseRequest();", ""),
        ("if (ended()) exchange->state->Cancel();", ""),
    ],
    "server/rpc/call/calls.cc": [
        ("status.message().substr(0, kMaxMessageBytes)", "status.message()"),
        ("entry.call = «std::shared_ptr<const CallInfo>(open, open->call.get())»;", "open->call"),
        ("if («!call.context.IsCancelled()») {", "true"),
    ],
    "server/rpc/call/calls.h": [
        ("answer.mutable_error()->set_retry_after_ms(absl::ToInt64Milliseconds(*delay));", ""),
        ("!calls_.empty() && SteadyNow() < deadline", "!calls_.empty()"),
    ],
    "server/rpc/call/ended_call.h": [
        ("cancelled_ || ended_ >= since", "true"),
    ],
    "server/rpc/call/reading_call.h": [
        ("if (waiting_since >= since) return false;", "return false;"),
        ("if (StopReading()) return StartRequest();", "return StartRequest();"),
    ],
    "server/rpc/call/unary_call.h": [
        ("if (!waited.ok() || !has_message_) return End(EndUnheard(incoming(), waited));", ""),
        ("call->wait().Begin();", ""),
    ],
    "server/rpc/call/raw_service.h": [
        ("if (status.ok()) status = HoldAnswer(*state, 0);", ""),
        ("if (answer_bytes > 0) status = HoldAnswer(*state, answer_bytes);", ""),
        ("«state.call().method.group == MethodGroup::kOpen»", "false"),
    ],
    "server/rpc/call/request_method.h": [
        (".deadline = «Deadline(call.context)»", "absl::InfiniteFuture()"),
        ("model = ModelOf(call), deadline = «Deadline(call.context)»", "absl::InfiniteFuture()"),
    ],
    "server/rpc/kserve_service.cc": [
        ("held.ok() ? start(bytes, std::move(end)) : end(held);", "start(bytes, std::move(end));"),
        ('["triton_final_response"].set_bool_param(\n      «true»', "false"),
    ],
    "server/rpc/scan/wire_scan.cc": [
        ("bytes % value_bytes != 0", "false"),
        ("length > static_cast<uint32_t>(input_.BytesUntilLimit())", "false"),
        ("if (kept < bytes || FindInvalidUtf8(text).has_value()) text.clear();", ""),
    ],
    "server/rpc/health_service.cc": [
        ("if (draining_) return;", ""),
        ("request.service().substr(0, kKeptNameBytes)", "request.service().substr(0, 128)"),
        ("watcher->Notify(Status(*watcher->name));", ""),
    ],
}
