# SPDX-License-Identifier: Apache-2.0
TESTS = ["rpc_parts_test", "encoder_service_test", "kserve_service_test", "attention_service_test",
         "request_limits_test"]
FILE_TESTS = {
    "server/rpc/attention/operation.cc": ["rpc_parts_test", "attention_service_test"],
    "server/rpc/attention/plan.cc": ["rpc_parts_test", "attention_service_test"],
    "server/rpc/attention/plan_kind.cc": ["rpc_parts_test", "attention_service_test"],
    "server/rpc/attention/plan_masks.cc": ["rpc_parts_test", "attention_service_test"],
    "server/rpc/attention/plan_operands.cc": ["rpc_parts_test", "attention_service_test"],
    "server/rpc/attention/attend_run.cc": ["attention_service_test"],
    "server/rpc/encoder/messages.cc": ["rpc_parts_test", "encoder_service_test", "request_limits_test"],
    "server/rpc/encoder/encoder_run.cc": ["encoder_service_test", "request_limits_test"],
    "server/rpc/encoder/model_message.cc": ["idle_models_test", "encoder_service_test"],
    "server/rpc/kserve/name_statistics.cc": ["rpc_parts_test"],
    "server/rpc/kserve/models.cc": ["rpc_parts_test", "idle_models_test", "kserve_service_test"],
    "server/rpc/kserve/infer_run.cc": ["kserve_service_test", "request_limits_test"],
    "server/rpc/kserve/input_tensors.cc": ["rpc_parts_test", "kserve_service_test"],
    "server/rpc/kserve/output_rows.cc": ["rpc_parts_test"],
    "server/rpc/kserve/output_tensors.cc": ["rpc_parts_test", "kserve_service_test"],
    "server/rpc/kserve/parameters.cc": ["rpc_parts_test", "kserve_service_test"],
    "server/rpc/kserve/served_kinds.cc": ["rpc_parts_test"],
    "server/rpc/kserve/service.cc": ["kserve_service_test", "request_limits_test"],
    "server/rpc/scan/wire_scan.cc": ["rpc_parts_test", "encoder_service_test", "kserve_service_test"],
    "server/rpc/wire/messages.cc": ["rpc_parts_test", "attention_service_test", "encoder_service_test",
                                    "request_limits_test"],
    "server/rpc/health_service.cc": ["health_service_test", "drain_test"],
}
MUTANTS = {
    "server/rpc/attention/operation.cc": [
        ('"bytes of scratch memory", «scratch_bytes»', "int64_t{0}"),
        ('"multiply-adds", «cost_.operations»', "int64_t{0}"),
        ("cost_.operations += PositionOperations(plan);", ""),
        ("«plan.own_value && positions.to_value»", "plan.own_value"),
        ('"bytes for its answer as f32", «response_bytes()»', "int64_t{0}"),
        ("std::max(call_.queries.max_len(), call_.keys.max_len()) * width", "0 * width"),
        ("added && positions_.to_value", "added"),
        ("value = LimitedMaskValue(value);", ""),
        ("value = ToBf16(LimitedMaskValue(FromBf16(value)));", ""),
    ],
    "server/rpc/attention/plan.cc": [
        ("call.mask.causal = request.causal();", ""),
        ("!module || call.dtype == model.module->dtype()", "true"),
    ],
    "server/rpc/attention/plan_kind.cc": [
        ("plan.operand_bytes += read.count * static_cast<int64_t>(sizeof(float));", ""),
        ("plan.operand_bytes += attention::MaxPackedBytes(tensor.dim(0), tensor.dim(1));", ""),
        ("call.feature_map = attention::FeatureMap::kRelu;", "call.feature_map = attention::FeatureMap::kEluPlusOne;"),
        ('return CheckNotNegative("strided.block", call.block);', "return absl::OkStatus();"),
    ],
    "server/rpc/attention/plan_masks.cc": [
        ("plan.operand_bytes += mask.count;", ""),
        ("(!plan.positions.to_value || call.value.dim == call.query.dim)", "true"),
        ("alibi.slopes_size() == heads", "alibi.slopes_size() >= heads"),
    ],
    "server/rpc/attention/plan_operands.cc": [
        ("starts.back() == rows", "true"),
    ],
    "server/rpc/attention/attend_run.cc": [
        ("request.priority = Message().message().priority();", ""),
    ],
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
    "server/rpc/encoder/messages.cc": [
        ("sequences.sequences_size() > limits.max_request_sequences", "false"),
        ("layer * (states.size() / layers)", "0"),
        ("if (outputs.pooled().has_normalize()) input.normalize = outputs.pooled().normalize();", ""),
    ],
    "server/rpc/encoder/model_message.cc": [
        ("info.set_layers(model.layers);", ""),
        ("info.mutable_labels()->Add(model.labels->begin(), model.labels->end());", ""),
        ("Classifies(facts) || Ranks(facts)", "Ranks(facts)"),
        ("info.mutable_prompt_names()->Add(model.prompt_names.begin(), model.prompt_names.end());", ""),
    ],
    "server/rpc/encoder/encoder_run.cc": [
        ("response_.set_id(call().state->client_id());", ""),
        ("ToProto(times(), *response_.mutable_timings());", ""),
    ],
    "server/rpc/kserve/name_statistics.cc": [
        ("totals_.inference_count += static_cast<uint64_t>(success.sequences);", "totals_.inference_count += 1;"),
        ("std::max(totals_.last_inference, now)", "now"),
        ("Add(totals_.queue, success.queue);", "Add(totals_.queue, success.total);"),
        ("totals_.batches[sequences].compute_infer", "totals_.batches[1].compute_infer"),
    ],
    "server/rpc/kserve/models.cc": [
        ("ready_only && !status.Serves()", "ready_only"),
        ("name.empty() || name == kind->NameOf(status.name)", "true"),
        ("FillDuration(snapshot.compute_output, *infer.mutable_compute_output());",
         "FillDuration(snapshot.compute_input, *infer.mutable_compute_output());"),
    ],
    "server/rpc/kserve/infer_run.cc": [
        ("input.priority = parameters.priority;", ""),
        (".queue = «times().queue»", "times().compute"),
        (".compute_infer = «times().compute»", "times().queue"),
        ("if (!status.ok()) return ref_.statistics().RecordFailure(times().total());", "if (!status.ok()) return;"),
        ("bytes <= shared_range_.bytes()", "true"),
    ],
    "server/rpc/kserve/parameters.cc": [
        ("kDefaultLevel - level", "level - kDefaultLevel"),
        ("level > kLevels", "level >= kLevels"),
    ],
    "server/rpc/kserve/served_kinds.cc": [
        ("kind.takes_texts() && !facts.takes_text", "!facts.takes_text"),
        ("values *= dim < 0 ? seq : dim;", "values *= dim;"),
        (".dims = {«max_texts > 1 ? -1 : 1»}", "1"),
        (".max_width = «max_texts»", "1"),
        ('facts.labels > 0 ? "" : "no classifier"', '""'),
    ],
    "server/rpc/kserve/service.cc": [
        ("held.ok() ? start(bytes, std::move(end)) : end(held);", "start(bytes, std::move(end));"),
        ('["triton_final_response"].set_bool_param(\n      «true»', "false"),
    ],
    "server/rpc/kserve/output_rows.cc": [
        ("«i < longest»; ++i", "i + 1 < longest"),
        ("static_cast<int64_t>(longest) / columns", "static_cast<int64_t>(longest)"),
        ("row += row_bytes;", "row += row_bytes / 2;"),
    ],
    "server/rpc/kserve/input_tensors.cc": [
        ("tensor.batch != first.batch || tensor.width != first.width", "tensor.width != first.width"),
        ("input.shape(1) > spec.max_width", "false"),
        ("tensor.value_bytes > 0 && bytes != expected", "tensor.value_bytes > 0 && bytes < expected"),
    ],
    "server/rpc/kserve/output_tensors.cc": [
        ("shared_memory && fixed_size", "shared_memory"),
        ("if (!model.kind->sized_by_results) return 0;", ""),
    ],
    "server/rpc/scan/wire_scan.cc": [
        ("bytes % value_bytes != 0", "false"),
        ("length > static_cast<uint32_t>(input_.BytesUntilLimit())", "false"),
        ("if (kept < bytes || FindInvalidUtf8(text).has_value()) text.clear();", ""),
    ],
    "server/rpc/wire/messages.cc": [
        ("timings.set_queue_us(absl::ToInt64Microseconds(«times.queue»));", "times.compute"),
        ("rank > max_rank", "false"),
    ],
    "server/rpc/health_service.cc": [
        ("if (draining_) return;", ""),
        ("request.service().substr(0, kKeptNameBytes)", "request.service().substr(0, 128)"),
        ("watcher->Notify(Status(*watcher->name));", ""),
    ],
}
