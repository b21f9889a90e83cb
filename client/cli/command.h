// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <memory>
#include <ostream>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/client.h"
#include "client/flags/flag_parser.h"
#include "client/heatmap/terminal.h"

namespace attendant::client {

enum ExitCode : int {
  kExitOk = 0,
  kExitServerError = 1,  // the server answered with an error, or is not serving
  kExitUsage = 2,        // wrong flags or arguments, or a file that cannot be used
  kExitNoAnswer = 3,     // unreachable, loading or draining, or too late
  kExitCertificate = 4,  // the server's certificate is not trusted, or not the server's
  kExitThreshold = 5,    // a measurement is beyond the bound that was given
  kExitNoVerdict = 6,    // the measurement says nothing about the server
};

struct Io {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool in_is_terminal = false;
  bool err_is_terminal = false;
  // The colours and columns that `out` can show.
  TerminalColors out_colors = TerminalColors::kNone;
  int out_columns = 80;
};

// A command of `attendant`. Each use of the program makes a new one.
class Command {
 public:
  virtual ~Command() = default;

  virtual void AddFlags(FlagParser& flags) = 0;
  // Runs after the flags are set. `arguments` are the words without flags. Returns an exit code.
  virtual int Run(std::span<const std::string> arguments, Io& io) = 0;
};

struct CommandInfo {
  std::string name;
  std::string summary;    // one line
  std::string arguments;  // after the name, in the usage line
  std::string details;    // whole lines for its help
  std::unique_ptr<Command> (*make)();
};

CommandInfo AttendCommandInfo();
CommandInfo EmbedCommandInfo();
CommandInfo EncodeCommandInfo();
CommandInfo RerankCommandInfo();
CommandInfo ClassifyCommandInfo();
CommandInfo SparseCommandInfo();
CommandInfo TokensCommandInfo();
CommandInfo WordsCommandInfo();
CommandInfo ModelsCommandInfo();
CommandInfo HealthCommandInfo();
CommandInfo LoadCommandInfo();
CommandInfo CompareCommandInfo();
CommandInfo HeatmapCommandInfo();
CommandInfo InspectCommandInfo();

// The whole program: `args` without the program's name.
int RunAttendant(std::span<const std::string> args, Io& io);

// The flags that every command has.
struct CommonFlags {
  ConnectOptions connect;
  bool json = false;

  void AddTo(FlagParser& flags);
};

// These write an error to io.err and return its exit code. FAILED_PRECONDITION means a mistake of
// the caller in all functions of the command line: kExitUsage. ServerError is for what the server
// alone says: there it is one of the server's.
int UsageError(absl::string_view message, Io& io);
int CallError(const absl::Status& status, const ConnectOptions& options, Io& io);
int ServerError(const absl::Status& status, const ConnectOptions& options, Io& io);

// Connects, and calls `use` with the client, whose calls are tried up to five times. Returns the
// exit code of its status; an error is written to io.err.
int RunWithClient(CommonFlags& common, Io& io, absl::FunctionRef<absl::Status(Client&)> use);

}  // namespace attendant::client
