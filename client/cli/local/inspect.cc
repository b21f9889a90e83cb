// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "server/models/inspect/folder_report.h"

namespace attendant::client {
namespace {

std::string Problem(const FolderReport& report) {
  return absl::StrCat(absl::StatusCodeToString(report.status.code()), ": ",
                      report.status.message());
}

nlohmann::ordered_json ToJson(const FolderReport& report) {
  nlohmann::ordered_json json{{"can_be_served", report.status.ok()}};
  if (!report.status.ok()) json["problem"] = Problem(report);
  json.update({{"model_type", report.model_type},
               {"architecture", report.architecture},
               {"tasks", report.tasks},
               {"takes_text", report.takes_text},
               {"layers", report.layers},
               {"heads", report.heads},
               {"hidden", report.hidden},
               {"vocab", report.vocab},
               {"max_sequence_tokens", report.max_sequence_tokens},
               {"max_text_tokens", report.max_text_tokens},
               {"embedding_dims", report.embedding_dims},
               {"pooling", report.pooling},
               {"normalize", report.normalize},
               {"prompt_names", report.prompt_names},
               {"default_prompt_name", report.default_prompt_name},
               {"labels", report.labels},
               {"token_labels", report.token_labels},
               {"adapters", report.adapters}});
  json["memory"] = nlohmann::ordered_json::object();
  for (const FolderReport::Memory& memory : report.memory) {
    json["memory"][memory.dtype] = {{"held_bytes", memory.held_bytes},
                                    {"peak_bytes", memory.peak_bytes}};
  }
  return json;
}

void WriteEncoder(const FolderReport& report, Io& io) {
  io.out << absl::StreamFormat(
      "encoder      %d layers, %d heads, hidden %d, vocabulary %s, at most %d tokens\n",
      report.layers, report.heads, report.hidden, Thousands(report.vocab),
      report.max_sequence_tokens);
  if (report.embedding_dims > 0) {
    io.out << absl::StreamFormat("embedding    %d values, %s%s; texts are cut at %d tokens\n",
                                 report.embedding_dims, report.pooling,
                                 report.normalize ? ", normalized" : "", report.max_text_tokens);
  }
  if (!report.takes_text && report.status.ok()) {
    io.out << "input        token ids only: there is no tokenizer.json\n";
  }
  for (const std::string& name : report.prompt_names) {
    io.out << "prompt       " << OneLine(name)
           << (name == report.default_prompt_name ? " (default)" : "") << "\n";
  }
  if (!report.labels.empty()) {
    io.out << "labels       " << OneLine(absl::StrJoin(report.labels, ", ")) << "\n";
  }
  if (!report.token_labels.empty()) {
    io.out << "token labels " << OneLine(absl::StrJoin(report.token_labels, ", ")) << "\n";
  }
  if (!report.adapters.empty()) {
    io.out << "adapters     " << OneLine(absl::StrJoin(report.adapters, ", ")) << "\n";
  }
  for (const FolderReport::Memory& memory : report.memory) {
    constexpr int64_t kMegabyte = 1 << 20;
    io.out << absl::StreamFormat("memory       %-4s %s MiB, while it loads %s MiB\n", memory.dtype,
                                 Thousands(memory.held_bytes / kMegabyte),
                                 Thousands(memory.peak_bytes / kMegabyte));
  }
}

void WriteText(const std::string& directory, const FolderReport& report, Io& io) {
  io.out << directory << ": "
         << (report.status.ok() ? "can be served"
                                : "cannot be served: " + OneLine(Problem(report), 1024))
         << "\n";
  if (!report.architecture.empty() || !report.model_type.empty()) {
    io.out << "config.json  "
           << OneLine(absl::StrJoin(
                  {report.model_type, report.architecture},
                  report.model_type.empty() || report.architecture.empty() ? "" : ", "))
           << "\n";
  }
  if (!report.tasks.empty()) {
    io.out << "tasks        " << OneLine(absl::StrJoin(report.tasks, ", ")) << "\n";
  }
  if (report.is_module || report.hidden == 0) return;
  WriteEncoder(report, io);
}

class InspectCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.AddSwitch("json", &json_, "Write JSON instead of text for people");
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    if (arguments.size() != 1 || arguments[0].empty()) {
      return UsageError("inspect takes one folder", io);
    }
    const FolderReport report = InspectFolder(arguments[0]);
    if (json_) {
      io.out << Dump(ToJson(report)) << "\n";
    } else {
      WriteText(arguments[0], report, io);
    }
    return report.status.ok() ? kExitOk : kExitServerError;
  }

 private:
  bool json_ = false;
};

}  // namespace

CommandInfo InspectCommandInfo() {
  return {.name = "inspect",
          .summary = "Tells what a model's folder is, without a server",
          .arguments = "DIR",
          .details =
              "Reads the folder as the server would: whether it can be served and why not, for "
              "which tasks, and what memory\nit takes on the CPU with one worker of one thread in "
              "each number format. The exit code is 1 for a folder that\ncannot be served.\n\n  "
              "attendant inspect models/all-MiniLM-L6-v2\n",
          .make = []() -> std::unique_ptr<Command> { return std::make_unique<InspectCommand>(); }};
}

}  // namespace attendant::client
