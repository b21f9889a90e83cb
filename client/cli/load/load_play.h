// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>

#include "client/cli/command.h"
#include "client/cli/load/load_setup.h"
#include "client/load/protocols/protocols.h"
#include "client/load/results/result.h"

namespace attendant::client {

// While it lives, the first SIGINT (Ctrl-C) or SIGTERM only sets interrupted(). One that comes half
// a second later, or more, ends the program: `timeout` sends its signal twice at once.
class CatchInterrupt {
 public:
  CatchInterrupt();
  ~CatchInterrupt();
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;

  static bool interrupted();
};

// Plays one load and shows its course on io.err, if that is a terminal or the setup says so. Ends
// early after Ctrl-C or SIGTERM. `plan` is the setup's, or that with another rate. `jsonl` takes
// every call, unless it is null.
LoadResult PlayLoad(const LoadSetup& setup, const LoadPlan& plan, const Target& target,
                    std::ostream* jsonl, Io& io);

}  // namespace attendant::client
