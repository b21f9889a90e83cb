// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/models/encoder_model.h"
#include "server/models/registry/model_registry.h"
#include "server/requests/request_run.h"

namespace attendant {

// The header, or gRPC metadata, that names the model of a request whose message cannot.
inline constexpr absl::string_view kModelHeader = "x-model";

// A predicate for the kind of model that a method needs. Each method uses one of the functions
// below.
using ModelNeed = bool (*)(const EncoderFacts& model);
bool AnyEncoder(const EncoderFacts& model);
bool TakesText(const EncoderFacts& model);
// Its purpose is embeddings: it has no labels, and its head, if any, makes no SPLADE vectors.
bool Embeds(const EncoderFacts& model);
bool EmbedsSparsely(const EncoderFacts& model);
bool Classifies(const EncoderFacts& model);  // a reranker too: it has one label
bool Ranks(const EncoderFacts& model);       // as CanRank says (ranking.h)

// True if a request without a model name may mean this model: it is of the kind that is needed, or
// has not loaded yet, so that its kind is unknown. False for a model that was unloaded, or is being
// unloaded.
bool MayBeMeant(const ModelStatus& status, ModelNeed need);

// The model of such a request: the one that the header names, at most kMaxIdBytes of it, else the
// only encoder there is, else the only one that may be meant. INVALID_ARGUMENT: there are several
// of these, or none.
absl::StatusOr<std::string> NamedOrOnlyModel(std::optional<absl::string_view> named,
                                             const ModelRegistry& models, ModelNeed need);

// The model of NamedOrOnlyModel, once the transport has put its name into the call.
// INVALID_ARGUMENT if NamedOrOnlyModel found none.
absl::StatusOr<std::shared_ptr<EncoderModel>> FindUnnamedModel(
    const RequestDependencies& dependencies, const RequestCall& call);

}  // namespace attendant
