// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/tei/method.h"

#include "absl/strings/string_view.h"

namespace attendant::tei {

absl::StatusOr<std::string> ModelOf(const grpc::CallbackServerContext& context,
                                    const ModelRegistry& models, ModelNeed need) {
  const auto& metadata = context.client_metadata();
  const auto named = metadata.find(grpc::string_ref(kModelHeader.data(), kModelHeader.size()));
  if (named == metadata.end()) return NamedOrOnlyModel(std::nullopt, models, need);
  return NamedOrOnlyModel(absl::string_view(named->second.data(), named->second.size()), models,
                          need);
}

}  // namespace attendant::tei
