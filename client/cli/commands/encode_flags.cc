// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/encode_flags.h"

#include <utility>

#include "client/cli/files/output_file.h"
#include "client/cli/input.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {

void ModelFlags::AddTo(FlagParser& flags) {
  flags.Add("model", &name, "NAME", "The model; not needed when the server has only one");
  flags.AddNumber("model_version", &version, "N", {0},
                  "The version of the model; 0 is the highest that serves");
}

absl::Status ModelFlags::Choose(Client& client, EncodeRequest& request) const {
  ATTENDANT_RETURN_IF_ERROR(CheckFlagUtf8("model", name));
  request.model_version = version;
  request.model = name;
  if (!name.empty()) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(request.model, client.OnlyModel());
  return absl::OkStatus();
}

void RequestFlags::AddTo(FlagParser& flags) {
  model.AddTo(flags);
  flags.Add("file", &file, "FILE", "File with a text on each line; - is standard input");
  flags.AddChoice<Truncation>("truncation", &truncation,
                              {{"text", Truncation::kTextOnly},
                               {"none", Truncation::kNone},
                               {"right", Truncation::kRight},
                               {"left", Truncation::kLeft}},
                              "Inputs to cut when they are too long: texts, none, or texts and "
                              "token ids, on the right or on "
                              "the left; the server refuses other long inputs");
  flags.Add("priority", &priority, "N", "From -100 to 100; higher is served first");
  flags.AddNumber("batch", &limits.max_sequences, "N", {1}, "Most sequences in one request");
  flags.AddNumber("concurrency", &limits.max_concurrency, "N", {1},
                  "Most requests at the same time");
}

absl::StatusOr<EncodeRequest> RequestFlags::Prototype(Client& client) const {
  EncodeRequest prototype;
  ATTENDANT_RETURN_IF_ERROR(model.Choose(client, prototype));
  prototype.truncation = truncation;
  prototype.priority = priority;
  return prototype;
}

absl::Status RequestFlags::SendTexts(Client& client, EncodeRequest prototype,
                                     std::span<const std::string> arguments, Io& io,
                                     OrderedEncoder::Sink take) const {
  OrderedEncoder encoder(client, std::move(prototype), limits, std::move(take));
  bool any = false;
  ATTENDANT_RETURN_IF_ERROR(ForEachText(arguments, file, io, [&](std::string text) {
    any = true;
    return encoder.Add(std::move(text));
  }));
  ATTENDANT_RETURN_IF_ERROR(encoder.Finish());
  return any ? absl::OkStatus() : absl::FailedPreconditionError("there are no texts");
}

void PromptFlags::AddTo(FlagParser& flags) {
  flags.Add("prompt_name", &name, "NAME",
            "Put the model's prompt of this name before each text; without it, its default one");
  flags.AddSwitch("no-prompt", &none, "Put no prompt before the texts");
}

absl::StatusOr<std::optional<std::string>> PromptFlags::Name() const {
  if (none && !name.empty()) {
    return absl::FailedPreconditionError("--prompt_name and --no-prompt exclude each other");
  }
  ATTENDANT_RETURN_IF_ERROR(CheckFlagUtf8("prompt_name", name));
  return none || !name.empty() ? std::optional(name) : std::nullopt;
}

void TextFlags::AddTo(FlagParser& flags) {
  RequestFlags::AddTo(flags);
  prompt.AddTo(flags);
}

absl::StatusOr<EncodeRequest> TextFlags::Prototype(Client& client) const {
  ATTENDANT_ASSIGN_OR_RETURN(std::optional<std::string> prompt_name, prompt.Name());
  ATTENDANT_ASSIGN_OR_RETURN(EncodeRequest prototype, RequestFlags::Prototype(client));
  prototype.prompt_name = std::move(prompt_name);
  return prototype;
}

void EncodeFlags::AddTo(FlagParser& flags) {
  TextFlags::AddTo(flags);
  flags.Add("output", &output, "FILE.npy", "Write the values to a NumPy file");
  flags.AddChoice<DType>("dtype", &dtype,
                         {{"f32", DType::kF32}, {"bf16", DType::kBf16}, {"f16", DType::kF16}},
                         "Number format on the wire");
}

absl::StatusOr<EncodeRequest> EncodeFlags::Prototype(Client& client) const {
  ATTENDANT_RETURN_IF_ERROR(CheckWritable(output));
  ATTENDANT_ASSIGN_OR_RETURN(EncodeRequest prototype, TextFlags::Prototype(client));
  prototype.dtype = dtype;
  return prototype;
}

}  // namespace attendant::client
