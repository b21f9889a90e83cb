# SPDX-License-Identifier: Apache-2.0
TESTS = ["http_doors_test"]
FILE_TESTS = {
    "server/http/json/json_writer.cc": ["http_endpoint_test"],
    "server/rpc/tei/predict.cc": ["tei_services_test"],
}
MUTANTS = {
    "server/http/kserve/infer_message.cc": [
        ("elements == expected", "elements <= expected"),
    ],
    "server/http/doors/tei_scores.cc": [
        ("FloatTextBytes(output) + JsonStringBytes(texts_)", "FloatTextBytes(output)"),
        ("entries * static_cast<int64_t>(output.sequences.size())", "entries"),
        ("if (raw) input.score_activation = ScoreActivation::kNone;", ""),
        ("if (!many_) return append(output.sequences[0]);", ""),
        ("AppendJsonString(«texts_[index]», json);", "texts_[0]"),
        ("AppendJsonString(«model_.classifier->labels[label]», json);", "model_.classifier->labels[0]"),
    ],
    "server/http/doors/rerank.cc": [
        ("DoorRun::TextBytes(output) + JsonStringBytes(documents_)", "DoorRun::TextBytes(output)"),
        ("if (left-- == 0) break;", ""),
    ],
    "server/http/doors/inputs.cc": [
        ("value.kind() != Kind::kArray || value.size() < 1 || value.size() > 2",
         "value.kind() != Kind::kArray || value.size() < 1"),
        ("if (given && «*given < 1»)", "*given < 0"),
        ("if («KindOfFirst(value) == Kind::kInteger») return IdsFromJson", "false"),
    ],
    "server/http/doors/json_message.cc": [
        ("root().kind() != JsonView::Kind::kObject", "false"),
    ],
    "server/http/doors/door_call.cc": [
        ("timeout_ms < 0 || (timeout_ms == 0 && header(kTimeout).has_value())", "timeout_ms < 0"),
        ("if (timeout_ms > 0) options.deadline = head_arrival + absl::Milliseconds(timeout_ms);", ""),
        ("ATTENDANT_RETURN_IF_ERROR(CheckPriority(options.priority));", ""),
    ],
    "server/http/doors/openai.cc": [
        ("tokens ? Truncation::kRight : Truncation::kNone", "Truncation::kRight"),
    ],
    "server/http/json/json_writer.cc": [
        ("kShortEscapes.find(c) != absl::string_view::npos", "false"),
        ("if («c < 0x20») {", "c < 0x10"),
        ("byte >= 0x80 && replaces ? static_cast<int64_t>(kReplacement.size()) : 1", "1"),
    ],
    "server/requests/ranking.cc": [
        ("scores[a] > scores[b]", "scores[a] < scores[b]"),
        ("input.score_activation = ScoreActivation::kSigmoid;", ""),
    ],
    "server/rpc/tei/predict.cc": [
        ("kPredictionBytes + static_cast<int64_t>(label.size())", "kPredictionBytes"),
    ],
}
