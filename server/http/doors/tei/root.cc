// SPDX-License-Identifier: Apache-2.0
// POST / of text-embeddings-inference, which huggingface_hub's client asks for at a bare base URL.
#include <memory>
#include <optional>

#include "server/http/doors/tei/parts.h"
#include "server/requests/only_model.h"
#include "server/requests/ranking.h"

namespace attendant {
namespace {

bool HasObject(JsonView request) {
  const std::optional<JsonView> inputs = request.Find("inputs");
  return inputs.has_value() && inputs->kind() == JsonView::Kind::kObject;
}

// The model's kind decides. BGE-M3 embeds: its sparse vectors stand beside its embeddings. What
// only one other path takes goes there, where TEI would refuse it.
class RootRun final : public TranslatedRun {
 public:
  using TranslatedRun::TranslatedRun;

 private:
  std::unique_ptr<DoorTranslation> Choose(JsonView request) override {
    if (CanRank(model()) && !request.Find("inputs").has_value()) return NewTeiRerank();
    if (model().classifier.has_value()) return NewTeiPredict(model());
    if (model().heads.splade) return NewTeiEmbedSparse();
    return HasObject(request) ? NewTeiSimilarity() : NewTeiEmbed();
  }
};

constexpr char kRootSchema[] =
    R"({"type":"object","description":"a model that embeds: as /embed or /similarity; a masked )"
    R"(language model: as /embed_sparse; a classifier: as /predict; a reranker: as /rerank or )"
    R"(/predict; one with vectors of tokens: `query` and `texts` as /rerank"})";

}  // namespace

HttpRoute TeiRootRoute(const DoorDependencies& dependencies) {
  return DoorRoute<RootRun>(
      dependencies, "/", Method::kTeiRoot, HeaderOrOnlyModel(AnyEncoder), TeiError,
      {"TEI: what the model's kind answers", kRootSchema, R"({"type":"array"})"});
}

}  // namespace attendant
