// SPDX-License-Identifier: Apache-2.0
#include "tests/support/parity.h"

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_format.h"

namespace attendant {

void RecordParity(const ParityFigure& figure) {
  const char* const path = std::getenv("ATTENDANT_PARITY_FILE");
  if (path == nullptr) return;
  // One write: tests of several processes share the file.
  const std::string line = absl::StrFormat(
      "{\"model\":\"%s\",\"output\":\"%s\",\"dtype\":\"%s\",\"backend\":\"%s\",\"measure\":\"%s\","
      "\"value\":%.3g,\"limit\":%.3g}\n",
      figure.model, figure.output, figure.dtype, figure.backend, figure.measure, figure.value,
      figure.limit);
  std::ofstream(path, std::ios::app) << line;
}

}  // namespace attendant
