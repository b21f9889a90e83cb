// SPDX-License-Identifier: Apache-2.0
// /embed_sparse of text-embeddings-inference.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/inputs.h"
#include "server/http/doors/tei/parts.h"
#include "server/http/json/json_writer.h"
#include "server/requests/only_model.h"
#include "server/requests/tasks.h"

namespace attendant {
namespace {

class EmbedSparseTranslation final : public DoorTranslation {
 public:
  absl::StatusOr<EncodeInput> FromJson(JsonView request, const EncodeLimits& limits) override {
    EncodeInput input;
    input.tasks.push_back({.kind = TaskKind::kSparse});
    ATTENDANT_RETURN_IF_ERROR(TeiOptionsFromJson(request, input));
    ATTENDANT_RETURN_IF_ERROR(SequencesFromJson(request, "inputs", limits, input.sequences));
    ATTENDANT_RETURN_IF_ERROR(request.Read("top_k", input.tasks[0].top_k));
    return input;
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    const size_t task = FindTask(output, TaskKind::kSparse);
    AppendJsonArray(output.sequences, json, [&json, task](const EncodedSequence& sequence) {
      AppendWeights(sequence.result.tasks[task], json);
    });
  }

  // {"index":..,"value":..}, of 8 bytes in the output.
  int64_t TextBytes(const EncodeOutput& output) const override {
    constexpr int64_t kEntryBytes = 30 + kJsonFloatBytes;
    return output.response_bytes / 8 * (kEntryBytes - 8);
  }

 private:
  static void AppendWeights(const HeadResult& result, std::string& json) {
    json.push_back('[');
    for (size_t i = 0; i < result.indices.size(); ++i) {
      absl::StrAppend(&json, i == 0 ? "" : ",", "{\"index\":", result.indices[i], ",\"value\":");
      AppendJsonFloat(result.values[i], json);
      json.push_back('}');
    }
    json.push_back(']');
  }
};

constexpr char kSparseVectors[] = R"({"type":"array","items":{"type":"array","items":{
"type":"object","properties":{"index":{"type":"integer"},"value":{"type":"number"}}}}})";

}  // namespace

std::unique_ptr<DoorTranslation> NewTeiEmbedSparse() {
  return std::make_unique<EmbedSparseTranslation>();
}

HttpRoute TeiSparseRoute(const DoorDependencies& dependencies) {
  return DoorRoute<FixedTeiRun<NewTeiEmbedSparse>>(
      dependencies, "/embed_sparse", Method::kTeiEmbedSparse, HeaderOrOnlyModel(EmbedsSparsely),
      TeiError,
      {"TEI: sparse embeddings of texts or token ids",
       TeiInputsSchema(R"("top_k":{"type":"integer","minimum":0,"default":0})"), kSparseVectors});
}

}  // namespace attendant
