// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/server/in_process_server.h"
#include "tests/support/checkpoint.h"

namespace attendant {

// A whole server in this process, which harnesses send bytes of any kind, and what must hold behind
// each of their requests. Its models are "tiny" and "judge", a reranker. It replaces malloc, to
// count.
class FuzzedServer {
 public:
  // The one of this process. Its threads run to the end.
  static FuzzedServer& Get();

  InProcessServer& server() { return server_; }

  // Memory counts from here.
  static void BeginMemory();
  // Requires that since BeginMemory client and server took no more than docs/bounds.md promises
  // for a request of so many bytes and its answers. `what` names it.
  static void RequireMemory(const std::string& what, size_t bytes, int64_t answer_bytes);
  // Requires that a good request has the answer that it had at first.
  void RequireGoodAnswer();

 private:
  FuzzedServer();
  std::string Pooled();

  TempDirectory judge_;
  InProcessServer server_;
  std::string pooled_;
};

}  // namespace attendant
