// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/checkpoint.h"

namespace attendant {

// The inputs that a harness begins with: files in FOLDER/HARNESS_seeds.
class Seeds {
 public:
  Seeds(const std::string& folder, const std::string& harness)
      : folder_(absl::StrCat(folder, "/", harness, "_seeds")) {
    std::filesystem::create_directories(folder_);
    std::filesystem::create_directories(absl::StrCat(folder, "/", harness, "_found"));
  }
  std::string path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  void Add(const std::string& name, const std::string& bytes) const {
    WriteFile(path(name), bytes);
  }

 private:
  std::string folder_;
};

// Of every method an empty message, garbage and a good one, and the messages that take most memory
// for their bytes.
void EncoderCallSeeds(const Seeds& seeds);
void AttentionCallSeeds(const Seeds& seeds);
void KServeCallSeeds(const Seeds& seeds);
void TeiCallSeeds(const Seeds& seeds);

// Of every path of the HTTP port good and bad bodies, and heads that servers have stumbled over.
void HttpSeeds(const Seeds& seeds);

// Of every folder of tests/golden the files that folder_fuzz.cc replaces.
void FolderSeeds(const Seeds& seeds);

}  // namespace attendant
