// SPDX-License-Identifier: Apache-2.0
#include "client/cli/command.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/format.h"

namespace attendant::client {
namespace {

constexpr absl::string_view kExitCodes =
    "Exit codes: 0 done; 1 the server answered with an error, or is not serving; 2 wrong usage, or "
    "a\n"
    "file that cannot be used; 3 no answer: the server is unreachable, loading or draining, or "
    "the\n"
    "time is over; 4 the server's certificate is not trusted; 5 a measurement is beyond its bound; "
    "6 no\n"
    "verdict: the client was the bottleneck.\n";

// True for gRPC's status of a handshake that this side ended.
bool IsCertificateError(const absl::Status& status) {
  return absl::IsUnavailable(status) &&
         (absl::StrContains(status.message(), "certificate verify failed") ||
          absl::StrContains(status.message(), "is not in peer certificate"));
}

// True for gRPC's status of a connection that it cannot even begin: it gets no further than the
// files. Without TLS it always begins one.
bool IsTlsFileError(const absl::Status& status, const TlsOptions& tls) {
  return tls.encrypts() && absl::IsUnavailable(status) &&
         absl::StrContains(status.message(), "empty address list");
}

// A mistake about TLS, as gRPC's words about a connection show it. A server that wants another
// connection than this one ends it before it says anything.
absl::string_view TlsHint(const absl::Status& status, const TlsOptions& tls) {
  const absl::string_view message = status.message();
  if (IsTlsFileError(status, tls)) {
    return " (the TLS files cannot be used: is one damaged, or the key of another certificate?)";
  }
  if (!absl::StrContains(message, "failed to connect to all addresses")) return "";
  if (absl::StrContains(message, "wrong version number")) return " (the server speaks no TLS)";
  if (!absl::StrContains(message, "Socket closed") &&
      !absl::StrContains(message, "Connection reset by peer")) {
    return "";
  }
  if (!tls.encrypts()) return " (the server may need --tls)";
  return tls.cert_file.empty() ? " (the server may need --tls_cert)" : "";
}

const std::vector<CommandInfo>& Commands() {
  static const auto& commands = *new std::vector<CommandInfo>{
      EmbedCommandInfo(),   RerankCommandInfo(), ClassifyCommandInfo(), SparseCommandInfo(),
      TokensCommandInfo(),  WordsCommandInfo(),  EncodeCommandInfo(),   AttendCommandInfo(),
      ModelsCommandInfo(),  HealthCommandInfo(), LoadCommandInfo(),     CompareCommandInfo(),
      HeatmapCommandInfo(), InspectCommandInfo()};
  return commands;
}

const CommandInfo* FindCommand(absl::string_view name) {
  for (const CommandInfo& info : Commands()) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::string Overview() {
  std::string text = "attendant asks an Attendant server from the command line.\n\nCommands:\n";
  for (const CommandInfo& info : Commands()) {
    absl::StrAppend(&text, "  ", info.name, std::string(10 - info.name.size(), ' '), info.summary,
                    "\n");
  }
  absl::StrAppend(&text,
                  "\nattendant help COMMAND explains a command and its flags; attendant --version "
                  "prints the version.\n\n",
                  kExitCodes);
  return text;
}

std::string CommandHelp(const CommandInfo& info) {
  const std::unique_ptr<Command> command = info.make();
  FlagParser flags;
  command->AddFlags(flags);
  return absl::StrCat("Usage: attendant ", info.name, " [flags]", info.arguments.empty() ? "" : " ",
                      info.arguments, "\n\n", info.summary, ".\n", info.details, "\n", flags.Help(),
                      "\n", kExitCodes);
}

// The flags of every command, for the reference page.
std::string FlagsMarkdown() {
  std::string text;
  for (const CommandInfo& info : Commands()) {
    const std::unique_ptr<Command> command = info.make();
    FlagParser flags;
    command->AddFlags(flags);
    absl::StrAppend(&text, "\n## attendant ", info.name, "\n\n", info.summary, ".\n",
                    flags.Markdown("###"));
  }
  return text;
}

int RunCommand(const CommandInfo& info, std::span<const std::string> args, Io& io) {
  for (const std::string& arg : args) {
    if (arg == "--") break;
    if (arg == "--help" || arg == "-h") {
      io.out << CommandHelp(info);
      return kExitOk;
    }
  }
  const std::unique_ptr<Command> command = info.make();
  FlagParser flags;
  command->AddFlags(flags);
  const absl::StatusOr<std::vector<std::string>> arguments = flags.Parse(args);
  if (!arguments.ok()) {
    io.err << "attendant " << info.name << ": " << arguments.status().message()
           << "\nattendant help " << info.name << " lists the flags.\n";
    return kExitUsage;
  }
  return command->Run(*arguments, io);
}

int RunHelp(std::span<const std::string> args, Io& io) {
  if (args.empty()) {
    io.out << Overview();
    return kExitOk;
  }
  const CommandInfo* info = FindCommand(args[0]);
  if (info == nullptr) return UsageError(absl::StrCat("there is no command '", args[0], "'"), io);
  io.out << CommandHelp(*info);
  return kExitOk;
}

}  // namespace

void CommonFlags::AddTo(FlagParser& flags) {
  flags.AddSwitch("json", &json, "Write JSON instead of text for people");
  flags.Section("Connection");
  flags.Add("server", &connect.target, "HOST:PORT",
            "Address of the server's gRPC port, or any gRPC target");
  flags.AddSwitch("round_robin", &connect.round_robin,
                  "Spread calls over all addresses of --server, as of dns:///NAME:8001 or "
                  "ipv4:ADDRESS:8001,ADDRESS:8001");
  flags.AddTimeout("timeout", &connect.timeout, "Longest time for one call");
  flags.AddSwitch("tls", &connect.tls.enabled, "Encrypt; trust the system's authorities");
  flags.Add("tls_ca", &connect.tls.ca_file, "FILE",
            "Encrypt; trust the authorities in this PEM file");
  flags.Add("tls_cert", &connect.tls.cert_file, "FILE",
            "PEM file with the client's certificate; needs --tls_key");
  flags.Add("tls_key", &connect.tls.key_file, "FILE", "PEM file with the key of --tls_cert");
  flags.Add("api_key_file", &connect.api_key_file, "FILE",
            "Send the API key in this file with each call; without TLS it travels unencrypted");
  flags.Add("trace", &connect.trace_id, "TRACE_ID",
            "Send a W3C traceparent of this trace (32 hexadecimal digits), and a request id, with "
            "each call");
}

int UsageError(absl::string_view message, Io& io) {
  io.err << "attendant: " << OneLine(message) << "\n";  // it may name what a file holds
  return kExitUsage;
}

int CallError(const absl::Status& status, const ConnectOptions& options, Io& io) {
  if (absl::IsFailedPrecondition(status)) return UsageError(status.message(), io);
  return ServerError(status, options, io);
}

int ServerError(const absl::Status& status, const ConnectOptions& options, Io& io) {
  io.err << "attendant: " << options.target << ": " << absl::StatusCodeToString(status.code())
         << ": " << OneLine(status.message()) << TlsHint(status, options.tls) << "\n";
  if (IsTlsFileError(status, options.tls)) return kExitUsage;
  if (IsCertificateError(status)) return kExitCertificate;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitNoAnswer;
    default:
      return kExitServerError;
  }
}

int RunWithClient(CommonFlags& common, Io& io, absl::FunctionRef<absl::Status(Client&)> use) {
  common.connect.max_attempts = 5;
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(common.connect);
  if (!client.ok()) return UsageError(client.status().message(), io);
  const absl::Status status = use(**client);
  return status.ok() ? kExitOk : CallError(status, common.connect, io);
}

int RunAttendant(std::span<const std::string> args, Io& io) {
  if (args.empty()) {
    io.err << Overview();
    return kExitUsage;
  }
  const std::string& name = args[0];
  if (name == "help" || name == "--help" || name == "-h") return RunHelp(args.subspan(1), io);
  if (name == "--version" || name == "version") {
    io.out << "attendant " << ATTENDANT_VERSION << "\n";
    return kExitOk;
  }
  if (name == "--help_markdown") {
    io.out << FlagsMarkdown();
    return kExitOk;
  }
  const CommandInfo* info = FindCommand(name);
  if (info != nullptr) return RunCommand(*info, args.subspan(1), io);
  return UsageError(absl::StrCat("there is no command '", name, "'; attendant help lists them"),
                    io);
}

}  // namespace attendant::client
