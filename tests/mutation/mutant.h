// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

// The mutant that this process runs; 0 is none. Only the rewritten copy of the sources includes
// this (mutants.py).
inline const int attendant_mutant = [] {
  const char* number = std::getenv("ATTENDANT_MUTANT");
  return number == nullptr ? 0 : std::atoi(number);
}();
