# SPDX-License-Identifier: Apache-2.0
TESTS = ["protocols_test", "encoder_service_test", "kserve_service_test", "attention_service_test",
         "request_limits_test"]
FILE_TESTS = {
    "server/protocols/attention/attend_run.cc": ["attention_service_test"],
    "server/protocols/attention/operation.cc": ["protocols_test", "attention_service_test"],
    "server/protocols/attention/plan.cc": ["protocols_test", "attention_service_test"],
    "server/protocols/attention/plan_kind.cc": ["protocols_test", "attention_service_test"],
    "server/protocols/attention/plan_masks.cc": ["protocols_test", "attention_service_test"],
    "server/protocols/attention/plan_operands.cc": ["protocols_test", "attention_service_test"],
    "server/protocols/encoder/encoder_run.cc": ["encoder_service_test", "request_limits_test"],
    "server/protocols/encoder/messages.cc": ["protocols_test", "encoder_service_test", "request_limits_test"],
    "server/protocols/encoder/model_message.cc": ["idle_models_test", "encoder_service_test"],
    "server/protocols/kserve/infer_run.cc": ["kserve_service_test", "request_limits_test"],
    "server/protocols/kserve/input_tensors.cc": ["protocols_test", "kserve_service_test"],
    "server/protocols/kserve/models.cc": ["protocols_test", "idle_models_test", "kserve_service_test"],
    "server/protocols/kserve/name_statistics.cc": ["protocols_test"],
    "server/protocols/kserve/output_rows.cc": ["protocols_test"],
    "server/protocols/kserve/output_tensors.cc": ["protocols_test", "kserve_service_test"],
    "server/protocols/kserve/parameters.cc": ["protocols_test", "kserve_service_test"],
    "server/protocols/kserve/served_kinds.cc": ["protocols_test"],
    "server/protocols/wire/messages.cc": ["protocols_test", "attention_service_test", "encoder_service_test",
                                         "request_limits_test"],
}
MUTANTS = {
    "server/protocols/attention/attend_run.cc": [
        ("request.priority = Message().message().priority();", ""),
    ],
    "server/protocols/attention/operation.cc": [
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
    "server/protocols/attention/plan.cc": [
        ("call.mask.causal = request.causal();", ""),
        ("!module || call.dtype == model.module->dtype()", "true"),
        ("positions.any() && request.key_lengths_size() > 0", "false"),
    ],
    "server/protocols/attention/plan_kind.cc": [
        ("plan.operand_bytes += read.count * static_cast<int64_t>(sizeof(float));", ""),
        ("plan.operand_bytes += attention::MaxPackedBytes(tensor.dim(0), tensor.dim(1));", ""),
        ("call.feature_map = attention::FeatureMap::kRelu;", "call.feature_map = attention::FeatureMap::kEluPlusOne;"),
        ('return CheckNotNegative("strided.block", call.block);', "return absl::OkStatus();"),
    ],
    "server/protocols/attention/plan_masks.cc": [
        ("plan.operand_bytes += mask.count;", ""),
        ("(!plan.positions.to_value || call.value.dim == call.query.dim)", "true"),
        ("alibi.slopes_size() == heads", "alibi.slopes_size() >= heads"),
    ],
    "server/protocols/attention/plan_operands.cc": [
        ("starts.back() == rows", "true"),
    ],
    "server/protocols/encoder/encoder_run.cc": [
        ("response_.set_id(call().state->client_id());", ""),
        ("ToProto(times(), *response_.mutable_timings());", ""),
    ],
    "server/protocols/encoder/messages.cc": [
        ("sequences.sequences_size() > limits.max_request_sequences", "false"),
        ("layer * (states.size() / layers)", "0"),
        ("form.token_offsets && sequence.len() == 0", "false"),
        ("if (outputs.pooled().has_normalize()) input.normalize = outputs.pooled().normalize();", ""),
    ],
    "server/protocols/encoder/model_message.cc": [
        ("info.set_layers(model.layers);", ""),
        ("info.mutable_labels()->Add(model.labels->begin(), model.labels->end());", ""),
        ("Classifies(facts) || Ranks(facts)", "Ranks(facts)"),
        ("info.mutable_prompt_names()->Add(model.prompt_names.begin(), model.prompt_names.end());", ""),
    ],
    "server/protocols/kserve/infer_run.cc": [
        ("input.priority = parameters.priority;", ""),
        (".queue = «times().queue»", "times().compute"),
        (".compute_infer = «times().compute»", "times().queue"),
        ("if (!status.ok()) return ref_.statistics().RecordFailure(times().total());", "if (!status.ok()) return;"),
        ("bytes <= shared_range_.bytes()", "true"),
    ],
    "server/protocols/kserve/input_tensors.cc": [
        ("tensor.batch != first.batch || tensor.width != first.width", "tensor.width != first.width"),
        ("input.shape(1) > spec.max_width", "false"),
        ("tensor.value_bytes > 0 && bytes != expected", "tensor.value_bytes > 0 && bytes < expected"),
    ],
    "server/protocols/kserve/models.cc": [
        ("ready_only && !status.Serves()", "ready_only"),
        ("name.empty() || name == kind->NameOf(status.name)", "true"),
        ("FillDuration(snapshot.compute_output, *infer.mutable_compute_output());",
         "FillDuration(snapshot.compute_input, *infer.mutable_compute_output());"),
    ],
    "server/protocols/kserve/name_statistics.cc": [
        ("totals_.inference_count += static_cast<uint64_t>(success.sequences);", "totals_.inference_count += 1;"),
        ("std::max(totals_.last_inference, now)", "now"),
        ("Add(totals_.queue, success.queue);", "Add(totals_.queue, success.total);"),
        ("totals_.batches[sequences].compute_infer", "totals_.batches[1].compute_infer"),
    ],
    "server/protocols/kserve/output_rows.cc": [
        ("«i < longest»; ++i", "i + 1 < longest"),
        ("static_cast<int64_t>(longest) / columns", "static_cast<int64_t>(longest)"),
        ("row += row_bytes;", "row += row_bytes / 2;"),
    ],
    "server/protocols/kserve/output_tensors.cc": [
        ("shared_memory && fixed_size", "shared_memory"),
        ("if (!model.kind->sized_by_results) return 0;", ""),
    ],
    "server/protocols/kserve/parameters.cc": [
        ("kDefaultLevel - level", "level - kDefaultLevel"),
        ("level > kLevels", "level >= kLevels"),
    ],
    "server/protocols/kserve/served_kinds.cc": [
        ("kind.takes_texts() && !facts.takes_text", "!facts.takes_text"),
        ("values *= dim < 0 ? seq : dim;", "values *= dim;"),
        (".dims = {«max_texts > 1 ? -1 : 1»}", "1"),
        (".max_width = «max_texts»", "1"),
        ('facts.labels > 0 ? "" : "no classifier"', '""'),
    ],
    "server/protocols/wire/messages.cc": [
        ("timings.set_queue_us(absl::ToInt64Microseconds(«times.queue»));", "times.compute"),
        ("rank > max_rank", "false"),
    ],
}
