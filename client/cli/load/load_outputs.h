// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/load/results/result.h"

namespace attendant::client {

// The files that a load writes, tried before it starts: a mistyped name costs no measurement.
class LoadOutputs {
 public:
  // Empty names: no file. What a file holds stays until its contents are there. FAILED_PRECONDITION
  // names the file that cannot be written, or that is given twice.
  absl::Status Open(const std::string& html, const std::string& hlog, const std::string& jsonl);

  // Empties the JSONL file for the calls of the load that begins, and returns it. Null without such
  // a file.
  std::ostream* StartJsonl();

  // Writes the page of all loads, and the histograms of the last one. FAILED_PRECONDITION when a
  // file did not take it. `summary` is a sentence for the top of the page; may be empty.
  absl::Status Write(const std::vector<LoadResult>& results, const std::string& summary);

 private:
  std::string html_, hlog_, jsonl_;
  std::ofstream calls_;
};

}  // namespace attendant::client
