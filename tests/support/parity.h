// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace attendant {

// The largest error of an output against its oracle.
struct ParityFigure {
  std::string model;    // the name of a golden folder
  std::string output;   // "hidden states", "sparse weights"
  std::string dtype;    // "f32"
  std::string backend;  // "cpu/avx512"
  std::string measure;  // what `value` is: kAbsolute, kRelative or kCosine
  double value = 0;
  double limit = 0;  // of the value, by the test
};

inline constexpr char kAbsolute[] = "absolute";  // the largest difference of two values
inline constexpr char kRelative[] = "relative";  // the same, divided by the oracle's norm
inline constexpr char kCosine[] = "cosine";      // 1 less the cosine

// Appends a line of JSON to the file that the environment variable ATTENDANT_PARITY_FILE names, for
// docs/make_parity.py. Without it, does nothing.
void RecordParity(const ParityFigure& figure);

}  // namespace attendant
