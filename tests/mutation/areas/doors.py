# SPDX-License-Identifier: Apache-2.0
TESTS = ["http_doors_test"]
FILE_TESTS = {
    "server/http/json/big_integers.cc": ["http_endpoint_test"],
    "server/http/json/json_writer.cc": ["http_endpoint_test"],
    "server/http/attendant/routes.cc": ["http_doors_test", "request_limits_test"],
    "server/http/doors/door_call.cc": ["http_doors_test", "request_limits_test"],
    "server/requests/only_model.cc": ["http_doors_test", "requests_test"],
    "server/rpc/tei/info.cc": ["tei_services_test"],
    "server/rpc/tei/predict.cc": ["tei_services_test"],
    "server/rpc/tei/rerank.cc": ["tei_services_test"],
    "server/rpc/tei/runs.cc": ["tei_services_test"],
}
MUTANTS = {
    "server/http/kserve/routes.cc": [
        ("route.single_headers = SingleHeaders(kJsonLengthHeader);", ""),
    ],
    "server/http/kserve/infer_message.cc": [
        ("elements == expected", "elements <= expected"),
    ],
    "server/http/json/json_view.cc": [
        ("absl::ConsumePrefix(&json, kByteOrderMark);", ""),
    ],
    "server/http/json/big_integers.cc": [
        ("json[i] == '\\\\' ? 2 : 1", "1"),
        ("«!absl::SimpleAtoi(number, &signed_value)» &&", "true"),
        ("std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)", "true"),
    ],
    "server/http/proto_json/proto_reader.cc": [
        ("number >= -kEnd && «number < kEnd»", "number <= kEnd"),
        ("number != std::trunc(number)", "false"),
    ],
    "server/http/doors/tei/scores.cc": [
        ("FloatTextBytes(output) + JsonStringBytes(texts_)", "FloatTextBytes(output)"),
        ("exchange.header(kModelHeader)", "std::optional<absl::string_view>()"),
        ("entries * static_cast<int64_t>(output.sequences.size())", "entries"),
        ("if (raw) input.score_activation = ScoreActivation::kNone;", ""),
        ("if (!many_) return append(output.sequences[0]);", ""),
        ("AppendJsonString(«texts_[index]», json);", "texts_[0]"),
        ("AppendJsonString(«model_.classifier->labels[label]», json);", "model_.classifier->labels[0]"),
    ],
    "server/http/doors/cohere/cohere.cc": [
        ("kVersion > 1 || request.Find(\"embedding_types\").has_value()", "true"),
        ("content->size() != 1", "false"),
        ("type->String() == \"text\" && text", "text.has_value()"),
    ],
    "server/http/doors/cohere/rerank.cc": [
        ("FloatTextBytes(output) + JsonStringBytes(documents_)", "FloatTextBytes(output)"),
        ("if (left-- == 0) break;", ""),
        ("\"top_n\", top_, «dialect_.min_top»", "1"),
    ],
    "server/http/doors/nim.cc": [
        ("input.score_activation = ScoreActivation::kNone;", ""),
    ],
    "server/http/doors/inputs.cc": [
        ("value.kind() != Kind::kArray || value.size() < 1 || value.size() > 2",
         "value.kind() != Kind::kArray || value.size() < 1"),
        ("if (given && «*given < minimum»)", "*given < 0"),
        ("if («KindOfFirst(value) == Kind::kInteger») return IdsFromJson", "false"),
        ("one.name != ending || («ending != \"query\" && ending != \"passage\"»)", "false"),
        ("if («absl::c_linear_search(kOthers, *task)») return", "false"),
        ("side = left ? «Truncation::kLeft»", "Truncation::kRight"),
    ],
    "server/http/doors/vllm/score.cc": [
        ("first[«first.size() == 1 ? 0 : i»]", "0"),
        ("if («first != 1 && first != second») {", "first != second"),
        ("if (!activation) input.score_activation = ScoreActivation::kNone;", ""),
        ("output.sequences[«first_ == 1 ? 0 : i»]", "0"),
    ],
    "server/http/doors/vllm/pooling.cc": [
        ("if (!activation) input.normalize = false;", ""),
        ("if («!kind.fits(model)») continue;", "false"),
        ("!task || «*task == kind.name»", "true"),
        ("if («data.columns == 0») return", "true"),
        ("!activation && «kind_->always_activated»", "true"),
    ],
    "server/http/doors/vllm/vllm.cc": [
        ("if («input.truncation == Truncation::kRight») input.truncation", "false"),
    ],
    "server/http/doors/json_message.cc": [
        ("root().kind() != JsonView::Kind::kObject", "false"),
        ("beside_.empty() || «root().Find(beside_).has_value()»", "true"),
    ],
    "server/http/doors/door_call.cc": [
        ("timeout_ms < 0 || (timeout_ms == 0 && header(timeout).has_value())", "timeout_ms < 0"),
        ("if (timeout_ms > 0) options.deadline = head_arrival + absl::Milliseconds(timeout_ms);", ""),
        ("ATTENDANT_RETURN_IF_ERROR(CheckPriority(options.priority));", ""),
        ("input.priority = priority_;", ""),
    ],
    "server/http/doors/door_call.h": [
        ("route.single_headers = SingleHeaders(kModelHeader);", ""),
    ],
    "server/http/attendant/json_request.h": [
        ("if («message_.priority() == 0») message_.set_priority(priority_);", "true"),
    ],
    "server/http/attendant/routes.cc": [
        ("«options->priority»),", "0"),
        ("header(kConnectTimeoutHeader).has_value() ? kConnectTimeoutHeader : kTimeoutHeader", "kTimeoutHeader"),
        ("route.single_headers = SingleHeaders(kConnectTimeoutHeader);", ""),
    ],
    "server/http/console/live.cc": [
        ('{"queue_tokens", «sample.queue_tokens»}', "sample.queue_requests"),
        ('{"queue_requests", «sample.queue_requests»}', "sample.queue_tokens"),
    ],
    "server/http/doors/tei/tei.cc": [
        ("ATTENDANT_RETURN_IF_ERROR(TeiOptionsFromJson(*parameters, input));", ""),
        ("if («parameters->kind() != JsonView::Kind::kObject») {", "false"),
        ("ATTENDANT_RETURN_IF_ERROR(TeiTruncationFromJson(request, input));", ""),
        ('return «"Overloaded"»;', '"Validation"'),
        ('return «"Unhealthy"»;', '"Validation"'),
        ('max_batch_tokens\\":", «model.max_batch_tokens»,', "model.max_batch_sequences"),
        ('max_batch_requests\\":", «model.max_batch_sequences»,', "model.max_batch_tokens"),
        ('max_concurrent_requests\\":", «model.max_queued_requests»,',
         "dependencies.encode.limits.max_request_sequences"),
        ('max_client_batch_size\\":", «dependencies.encode.limits.max_request_sequences»,', "model.max_queued_requests"),
    ],
    "server/http/doors/answer_form.cc": [
        ("if («value->kind() != JsonView::Kind::kArray») return", "true"),
        ("if («value.String() == word») return absl::OkStatus();", "true"),
        ('return «CheckOnlyWord(request, "modality", "text")»;', "absl::OkStatus()"),
    ],
    "server/http/doors/dialects.cc": [
        ("cuts ? Truncation::kRight : Truncation::kNone", "Truncation::kRight"),
        ("if («!std::holds_alternative<std::string>(sequence)») return absl::OkStatus();", "false"),
        ("!side || «truncation == Truncation::kNone» ||", "false"),
        ("if («word») {\n      return absl::InvalidArgumentError", "false"),
        ("if (!activation) given = false;", ""),
        ("if (given) normalize = given;", ""),
        ("value && value != given.value_or(*value)", "false"),
        ("if («!first.empty()») {", "false"),
        ("raw || «!activation»", "false"),
        ("«raw» || !activation", "false"),
    ],
    "server/http/doors/openai.cc": [
        ("ATTENDANT_RETURN_IF_ERROR(CheckAnswerForm(request));", ""),
        ("if (tokens) truncation = Truncation::kRight;", ""),
        ("«kOfTei ? Truncation::kRight : Truncation::kNone», input.truncation", "Truncation::kRight"),
        ("kOfTei || «input.dims > 0»", "false"),
    ],
    "server/http/json/json_writer.cc": [
        ("kShortEscapes.find(c) != absl::string_view::npos", "false"),
        ("if («c < 0x20») {", "c < 0x10"),
        ("byte >= 0x80 && replaces ? static_cast<int64_t>(kReplacement.size()) : 1", "1"),
    ],
    "server/requests/only_model.cc": [
        ("state == ModelState::kUnloaded || state == ModelState::kUnloading", "state == ModelState::kUnloading"),
        ("state == ModelState::kUnloaded || state == ModelState::kUnloading", "state == ModelState::kUnloaded"),
        ("«!status.facts.has_value() || need(*status.facts)»", "status.facts.has_value() && need(*status.facts)"),
        ("«!model.splade» && ", "true"),
        ("model.labels == 1", "true"),
    ],
    "server/requests/ranking.cc": [
        ("scores[a] > scores[b]", "scores[a] < scores[b]"),
        ("input.score_activation = ScoreActivation::kSigmoid;", ""),
    ],
    "server/rpc/tei/predict.cc": [
        ("kPredictionBytes + static_cast<int64_t>(label.size())", "kPredictionBytes"),
    ],
    "server/rpc/tei/rerank.cc": [
        ("request_.set_truncate(message.truncate());", ""),
        ("request_.set_truncation_direction(message.truncation_direction());", ""),
    ],
    "server/rpc/tei/runs.cc": [
        ("truncate ? Truncation::kLeft : Truncation::kNone", "truncate ? Truncation::kRight : Truncation::kNone"),
        ("set_tokenization_time_ns(Nanoseconds(«times.decode»))", "times.queue"),
        ("set_queue_time_ns(Nanoseconds(«times.queue»))", "times.compute"),
        ("set_inference_time_ns(Nanoseconds(«times.compute»))", "times.queue"),
    ],
    "server/rpc/tei/info.cc": [
        ("set_max_batch_tokens(static_cast<uint32_t>(«model.max_batch_tokens»))", "model.max_batch_sequences"),
        ("set_max_batch_requests(static_cast<uint32_t>(«model.max_batch_sequences»))", "model.max_batch_tokens"),
        ("set_max_concurrent_requests(static_cast<uint32_t>(«model.max_queued_requests»))", "int64_t{4096}"),
        ("static_cast<uint32_t>(«dependencies.encode.limits.max_request_sequences»)", "int64_t{4096}"),
    ],
}
