// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/commands/attend_report.h"
#include "client/cli/format.h"
#include "client/cli/input.h"

namespace attendant::client {
namespace {

nlohmann::ordered_json ToJson(const ModelInfo& model) {
  nlohmann::ordered_json json{
      {"name", model.name}, {"version", model.version}, {"state", model.state}};
  if (!model.error.empty()) json["error"] = model.error;
  if (model.hidden == 0) return json;
  json.update({{"backend", model.backend},
               {"isa", model.isa},
               {"dtype", model.dtype},
               {"layers", model.layers},
               {"heads", model.heads},
               {"hidden", model.hidden},
               {"embedding_dims", model.embedding_dims},
               {"vocab", model.vocab},
               {"max_sequence_tokens", model.max_sequence_tokens},
               {"max_text_tokens", model.max_text_tokens},
               {"pooling", model.pooling},
               {"normalize", model.normalize}});
  if (!model.labels.empty()) json["labels"] = model.labels;
  if (!model.prompt_names.empty()) json["prompt_names"] = model.prompt_names;
  if (!model.default_prompt_name.empty()) json["default_prompt_name"] = model.default_prompt_name;
  if (!model.tasks.empty()) json["tasks"] = model.tasks;
  if (!model.token_labels.empty()) json["token_labels"] = model.token_labels;
  return json;
}

using Cells = std::vector<std::string>;

// An error follows behind all `columns`.
Cells ToRow(const ModelInfo& model, size_t columns) {
  Cells row = {model.name, absl::StrCat(model.version), model.state};
  if (model.hidden != 0) {
    row.insert(
        row.end(),
        {absl::StrCat(model.backend, " ", model.isa), model.dtype, absl::StrCat(model.layers),
         absl::StrCat(model.heads), absl::StrCat(model.hidden), absl::StrCat(model.vocab),
         absl::StrCat(model.max_sequence_tokens, " ids, ", model.max_text_tokens, " text"),
         absl::StrCat(model.pooling, model.normalize ? ", normalized" : "")});
  }
  if (model.error.empty()) return row;
  row.resize(columns);
  row.push_back(model.error);
  return row;
}

std::string ModelsTable(const std::vector<ModelInfo>& models) {
  std::vector<Cells> rows = {{"MODEL", "VERSION", "STATE", "BACKEND", "DTYPE", "LAYERS", "HEADS",
                              "HIDDEN", "VOCAB", "MAX TOKENS", "POOLING"}};
  const size_t columns = rows[0].size();
  bool any_error = false;
  for (const ModelInfo& model : models) {
    rows.push_back(ToRow(model, columns));
    any_error = any_error || !model.error.empty();
  }
  if (any_error) rows[0].push_back("ERROR");
  return Table(rows);
}

class ModelsCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.AddRepeated("unload", &unloads_.names, "NAME",
                      "First unload this model; may be repeated");
    flags.AddRepeated("load", &loads_.names, "NAME",
                      "Then load this model of the server's repository, or what changed in it; may "
                      "be repeated");
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    if (!arguments.empty()) return UsageError("models takes no arguments", io);
    for (const Change* change : {&unloads_, &loads_}) {
      for (const std::string& name : change->names) {
        const absl::Status named = CheckFlagUtf8(change->flag, name);
        if (!named.ok()) return UsageError(named.message(), io);
      }
    }
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(common_.connect);
    if (!client.ok()) return UsageError(client.status().message(), io);
    for (const Change* change : {&unloads_, &loads_}) {
      for (const std::string& name : change->names) {
        const absl::Status status = ((**client).*change->call)(name);
        if (!status.ok()) return ChangeError(*change, name, status, io);
      }
    }
    absl::StatusOr<std::vector<ModelInfo>> models = (*client)->Models();
    if (!models.ok()) return CallError(models.status(), common_.connect, io);
    // After Models, never before: a module that loads in between is then in both lists, and erased
    // from the models. In the other order it would be in neither.
    absl::StatusOr<AttentionOffer> offer = (*client)->ListAttention();
    if (absl::IsUnimplemented(offer.status())) offer.emplace();  // a server without attention
    if (!offer.ok()) return CallError(offer.status(), common_.connect, io);
    for (const AttentionModule& module : offer->modules) {
      std::erase_if(*models, [&](const ModelInfo& model) { return model.name == module.name; });
    }
    Write(*models, offer->modules, io);
    return kExitOk;
  }

 private:
  // What to do with the models of these names before the list.
  struct Change {
    absl::string_view flag;
    absl::Status (Client::*call)(const std::string& name);
    std::vector<std::string> names = {};
  };

  int ChangeError(const Change& change, absl::string_view name, const absl::Status& status,
                  Io& io) const {
    const absl::string_view hint =
        absl::IsDeadlineExceeded(status)
            ? " (the server may go on: attendant models shows the state, --timeout waits longer)"
            : "";
    return ServerError(absl::Status(status.code(), absl::StrCat("cannot ", change.flag, " '", name,
                                                                "': ", status.message(), hint)),
                       common_.connect, io);
  }

  void Write(const std::vector<ModelInfo>& models, const std::vector<AttentionModule>& modules,
             Io& io) const {
    if (common_.json) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const ModelInfo& model : models) list.push_back(ToJson(model));
      nlohmann::ordered_json json{{"models", list}, {"modules", nlohmann::ordered_json::array()}};
      for (const AttentionModule& module : modules) json["modules"].push_back(ToJson(module));
      io.out << Dump(json) << "\n";
      return;
    }
    if (!models.empty() || modules.empty()) io.out << ModelsTable(models);
    if (modules.empty()) return;
    io.out << (models.empty() ? "" : "\n") << ModulesTable(modules);
  }

  // Unloads come first: a load may need their memory.
  Change unloads_{.flag = "unload", .call = &Client::UnloadModel};
  Change loads_{.flag = "load", .call = &Client::LoadModel};
  CommonFlags common_;
};

}  // namespace

CommandInfo ModelsCommandInfo() {
  return {.name = "models",
          .summary = "Lists the server's models and attention modules; loads and unloads them",
          .arguments = "",
          .details =
              "Loads and unloads need a server with --model_control=explicit and, where it "
              "has API keys, a key\n"
              "of the group admin. They stop at the first that fails.\n",
          .make = []() -> std::unique_ptr<Command> { return std::make_unique<ModelsCommand>(); }};
}

}  // namespace attendant::client
