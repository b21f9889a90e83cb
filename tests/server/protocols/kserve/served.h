// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/protocols/kserve/models.h"

namespace attendant {

// The model "m" with these facts, under its name with this suffix.
inline KServeModelInfo ServedModel(const std::string& suffix, EncoderFacts facts) {
  const std::string name = absl::StrCat("m", suffix);
  return {.name = name,
          .kind = SplitServedName(name).second,
          .facts = std::move(facts),
          .max_batch_size = 4};
}

}  // namespace attendant
