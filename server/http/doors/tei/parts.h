// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/http/doors/door_call.h"
#include "server/http/doors/translation.h"
#include "server/http/http_types.h"
#include "server/http/json/json_view.h"
#include "server/models/encoder_model.h"
#include "server/requests/encode_types.h"

namespace attendant {

// {"error": .., "error_type": ..}
HttpResponse TeiError(const HttpFailure& failure);

// Reads truncate, true by default as TEI's clients expect, and truncation_direction. The constant
// gives both as properties of a schema.
absl::Status TeiTruncationFromJson(JsonView request, EncodeInput& input);
inline constexpr absl::string_view kTeiTruncationProperties =
    R"("truncate":{"type":"boolean","default":true},"truncation_direction":)"
    R"({"enum":["left","Left","right","Right"],"default":"right"})";
// The same and prompt_name, which pairs of texts do not have.
absl::Status TeiOptionsFromJson(JsonView request, EncodeInput& input);

// The schema of a request with `inputs`, as SequencesFromJson reads them, TeiOptionsFromJson's
// properties and `more`.
std::string TeiInputsSchema(absl::string_view more = "");

std::unique_ptr<DoorTranslation> NewTeiEmbed();
std::unique_ptr<DoorTranslation> NewTeiSimilarity();
std::unique_ptr<DoorTranslation> NewTeiEmbedSparse();
std::unique_ptr<DoorTranslation> NewTeiRerank();
// `model`, whose labels it names, must outlive it.
std::unique_ptr<DoorTranslation> NewTeiPredict(const EncoderModel& model);

// A request of a path that has one translation.
template <std::unique_ptr<DoorTranslation> (*kNew)()>
class FixedTeiRun final : public TranslatedRun {
 public:
  using TranslatedRun::TranslatedRun;

 private:
  std::unique_ptr<DoorTranslation> Choose(JsonView /*request*/) override { return kNew(); }
};

// POST /tokenize and /decode
std::vector<HttpRoute> TeiTokenizeRoutes(const DoorDependencies& dependencies);
// POST /: the path of a client that knows the server's address alone. Answers as the path of the
// model's kind does.
HttpRoute TeiRootRoute(const DoorDependencies& dependencies);
// POST /embed_sparse
HttpRoute TeiSparseRoute(const DoorDependencies& dependencies);
// POST /rerank and /predict
std::vector<HttpRoute> TeiScoreRoutes(const DoorDependencies& dependencies);

}  // namespace attendant
