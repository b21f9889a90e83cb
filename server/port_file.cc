// SPDX-License-Identifier: Apache-2.0
#include "server/port_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace attendant {

absl::Status WritePortFile(const std::string& path, int grpc_port, int http_port) {
  const std::string draft = absl::StrCat(path, ".", getpid(), ".tmp");
  std::ofstream file(draft, std::ios::trunc);
  file << "grpc=" << grpc_port << "\nhttp=" << http_port << "\n";
  file.close();
  if (file.good() && std::rename(draft.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const std::string reason = std::strerror(errno);
  std::remove(draft.c_str());
  return absl::UnavailableError(absl::StrCat("cannot write --port_file ", path, ": ", reason));
}

}  // namespace attendant
