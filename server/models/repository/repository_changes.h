// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace attendant {

// Decides from what a repository holds when models are to be loaded and unloaded. Pure: no clock,
// no files. A model is loaded once its files have stayed the same for the settle time, so that half
// a copy is not loaded, and it is loaded once for each such state: a load that failed is tried
// again when the files change, or by Repeat. A model that is gone for the settle time is unloaded.
class RepositoryChanges {
 public:
  using Fingerprints = std::map<std::string, std::string>;  // by the model's name

  // `loaded`: what was loaded at the start.
  RepositoryChanges(absl::Duration settle, const Fingerprints& loaded);

  struct Changes {
    std::vector<std::string> load;
    std::vector<std::string> unload;
  };
  // The loads and unloads that are due now that the repository holds `found`. REQUIRES: `now` never
  // goes back.
  Changes Update(const Fingerprints& found, absl::Time now);
  // The last change of the model was not handled: it is due again.
  void Repeat(const std::string& name);

 private:
  struct Model {
    std::string handled;  // the state that was loaded; empty: none; kUnknown
    std::string seen;     // empty: no such model
    absl::Time since;     // it looks like that
  };

  static constexpr char kUnknown[] = "?";  // is no fingerprint

  const absl::Duration settle_;
  std::map<std::string, Model> models_;
};

}  // namespace attendant
