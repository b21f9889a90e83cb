// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve/models.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/quote.h"

namespace attendant {
namespace {

// Clients compare these words.
const char* IndexState(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return "LOADING";
    case ModelState::kReady:
      return "READY";
    case ModelState::kFailed:
    case ModelState::kLost:
      return "UNAVAILABLE";
    case ModelState::kDraining:
      return "UNLOADING";
  }
  return "UNKNOWN";
}

}  // namespace

absl::StatusOr<FoundModel> KServeModels::Find(absl::string_view name,
                                              absl::string_view version) const {
  const auto [base, kind] = SplitServedName(name);
  const absl::StatusOr<EncoderModel*> model = registry_.Find(base);
  if (absl::IsNotFound(model.status())) {
    return absl::NotFoundError(absl::StrCat("no model ", Quote(name)));
  }
  if (!model.ok()) return model.status();
  const absl::Status version_status = CheckKServeVersion(name, version);
  if (!version_status.ok()) return version_status;
  if (kind == ServedName::kText && (*model)->tokenizer == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("model ", Quote(name), " has no tokenizer: use '.ids' or '.encoder'"));
  }
  return Describe(**model, kind);
}

FoundModel KServeModels::Describe(EncoderModel& model, ServedName kind) const {
  return {.model = &model,
          .served = {.name = JoinServedName(model.name, kind),
                     .kind = kind,
                     .hidden = model.config().hidden,
                     .max_sequence_tokens = model.max_sequence_tokens,
                     .max_batch_size = max_batch_size_}};
}

std::vector<FoundModel> KServeModels::NamesOf(EncoderModel& model) const {
  std::vector<FoundModel> names;
  if (model.tokenizer != nullptr) names.push_back(Describe(model, ServedName::kText));
  names.push_back(Describe(model, ServedName::kIds));
  names.push_back(Describe(model, ServedName::kEncoder));
  return names;
}

std::vector<FoundModel> KServeModels::ListReady() const {
  std::vector<FoundModel> all;
  for (const ModelStatus& status : registry_.List()) {
    if (status.state != ModelState::kReady || status.encoder() == nullptr) continue;
    for (FoundModel& found : NamesOf(*status.encoder())) all.push_back(std::move(found));
  }
  return all;
}

void KServeModels::FillIndex(bool ready_only, inference::RepositoryIndexResponse& index) const {
  for (const ModelStatus& status : registry_.List()) {
    if (status.attention() != nullptr) continue;  // this protocol has no words for it
    if (ready_only && status.state != ModelState::kReady) continue;
    std::vector<std::string> names;
    if (status.encoder() == nullptr) {
      names.push_back(status.name);
    } else {
      for (const FoundModel& found : NamesOf(*status.encoder())) names.push_back(found.served.name);
    }
    for (std::string& name : names) {
      auto& entry = *index.add_models();
      entry.set_name(std::move(name));
      entry.set_version(std::string(kKServeVersion));
      entry.set_state(IndexState(status.state));
      entry.set_reason(std::string(status.error.message()));
    }
  }
}

}  // namespace attendant
