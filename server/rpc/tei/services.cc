// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/tei/services.h"

#include <utility>

namespace attendant {

std::vector<std::string> TeiServices::names() {
  return {::tei::v1::Info::service_full_name(), ::tei::v1::Embed::service_full_name(),
          ::tei::v1::Predict::service_full_name(), ::tei::v1::Rerank::service_full_name(),
          ::tei::v1::Tokenize::service_full_name()};
}

std::vector<OpenMethod*> TeiServices::open_methods() const {
  std::vector<OpenMethod*> all;
  for (const auto* methods : {&embed_.open_methods(), &predict_.open_methods(),
                              &rerank_.open_methods(), &tokenize_.open_methods()}) {
    all.insert(all.end(), methods->begin(), methods->end());
  }
  return all;
}

}  // namespace attendant
