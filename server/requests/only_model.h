// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/models/encoder_model.h"
#include "server/models/model_registry.h"
#include "server/requests/request_run.h"

namespace attendant {

// The header, or gRPC metadata, that names the model of a request whose message cannot.
inline constexpr absl::string_view kModelHeader = "x-model";

// The model of such a request: the one that the header names, at most kMaxIdBytes of it, else the
// only encoder there is. INVALID_ARGUMENT: there are several, or none.
absl::StatusOr<std::string> NamedOrOnlyModel(std::optional<absl::string_view> named,
                                             const ModelRegistry& models);

// That model, once the transport has named it in the call. INVALID_ARGUMENT: it could not.
absl::StatusOr<std::shared_ptr<EncoderModel>> FindUnnamedModel(
    const RequestDependencies& dependencies, const RequestCall& call);

}  // namespace attendant
