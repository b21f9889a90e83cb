// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/commands/encode_flags.h"
#include "client/cli/files/npy.h"
#include "client/cli/format.h"
#include "client/cli/input.h"
#include "client/ordered_encoder.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr size_t kShownStates = 6;

class EncodeCommand : public Command {
 public:
  EncodeCommand() { flags_.limits.max_sequences = 8; }

  void AddFlags(FlagParser& flags) override {
    flags_.AddTo(flags);
    flags.AddRepeated("ids", &ids_, "ID,ID,...",
                      "A sequence of token ids, special tokens included; may be given many times");
    flags.AddRepeated("mask", &masks_, "0|1,...",
                      "The attention mask of an --ids; the first mask belongs to the first --ids");
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    return RunWithClient(common_, io,
                         [&](Client& client) { return Encode(client, arguments, io); });
  }

 private:
  absl::Status Encode(Client& client, std::span<const std::string> arguments, Io& io) {
    if (masks_.size() > ids_.size()) {
      return absl::FailedPreconditionError("there are more --mask than --ids");
    }
    ATTENDANT_ASSIGN_OR_RETURN(EncodeRequest prototype, flags_.Prototype(client));
    prototype.last_hidden_state = true;
    prototype.token_ids = true;
    OrderedEncoder encoder(client, std::move(prototype), flags_.limits,
                           [&](const EncodeRequest& request, const EncodeResult& result) {
                             return Take(request, result, io);
                           });
    ATTENDANT_RETURN_IF_ERROR(AddAll(arguments, encoder, io));
    ATTENDANT_RETURN_IF_ERROR(encoder.Finish());
    if (num_sequences_ == 0) return absl::FailedPreconditionError("there are no texts");
    if (flags_.output.empty()) return absl::OkStatus();
    return WriteNpy(flags_.output, states_.shape, states_.values);
  }

  absl::Status AddAll(std::span<const std::string> arguments, OrderedEncoder& encoder, Io& io) {
    for (size_t i = 0; i < ids_.size(); ++i) {
      ATTENDANT_ASSIGN_OR_RETURN(TokenIds ids,
                                 ParseIds(ids_[i], i < masks_.size() ? masks_[i] : ""));
      ATTENDANT_RETURN_IF_ERROR(encoder.Add(std::move(ids)));
    }
    if (!ids_.empty() && arguments.empty() && flags_.file.empty()) return absl::OkStatus();
    return ForEachText(arguments, flags_.file, io,
                       [&](std::string text) { return encoder.Add(std::move(text)); });
  }

  absl::Status Take(const EncodeRequest& request, const EncodeResult& result, Io& io) {
    if (result.last_hidden_state.shape.empty()) {
      return absl::InternalError("the answer has no hidden states");
    }
    size_t row = 0;
    for (size_t i = 0; i < request.sequences.size(); ++i) {
      if (common_.json) {
        WriteJson(request.sequences[i], result, i, row, io);
      } else {
        WriteText(request.sequences[i], result, i, row, io);
      }
      row += static_cast<size_t>(result.sequences[i].tokens);
      ++num_sequences_;
    }
    if (!flags_.output.empty()) {
      ATTENDANT_RETURN_IF_ERROR(AppendRows("last_hidden_state", result.last_hidden_state, states_));
    }
    return io.out ? absl::OkStatus() : absl::FailedPreconditionError("cannot write the output");
  }

  // Rows [row, row + tokens) of the answer belong to sequence `i`. Leaves out the values that go to
  // a file.
  void WriteJson(const Sequence& sequence, const EncodeResult& result, size_t i, size_t row,
                 Io& io) const {
    const SequenceInfo& info = result.sequences[i];
    FloatJson json{{"index", num_sequences_}, {"model", result.model}};
    if (const auto* text = std::get_if<std::string>(&sequence)) json["text"] = *text;
    json["tokens"] = info.tokens;
    json["truncated"] = info.truncated;
    json["tokens_seen"] = info.tokens_seen;
    json["token_ids"] = info.token_ids;
    if (flags_.output.empty()) {
      FloatJson& states = json["last_hidden_state"] = FloatJson::array();
      for (size_t t = 0; t < static_cast<size_t>(info.tokens); ++t) {
        states.push_back(Row(result.last_hidden_state, row + t));
      }
    }
    io.out << Dump(json) << "\n";
  }

  void WriteText(const Sequence& sequence, const EncodeResult& result, size_t i, size_t row,
                 Io& io) const {
    const SequenceInfo& info = result.sequences[i];
    const auto* text = std::get_if<std::string>(&sequence);
    io.out << absl::StreamFormat("sequence %d: %d tokens x %d values%s  %s\n", num_sequences_,
                                 info.tokens, result.last_hidden_state.shape[1], CutNote(info),
                                 text == nullptr ? "(ids)" : OneLine(*text, kShownTextWidth));
    if (!flags_.output.empty()) return;
    for (size_t t = 0; t < static_cast<size_t>(info.tokens); ++t) {
      const std::string id = t < info.token_ids.size() ? absl::StrCat(info.token_ids[t]) : "-";
      io.out << absl::StreamFormat(
          "  %4d  id %6s  %s\n", t, id,
          FirstValues(Row(result.last_hidden_state, row + t), kShownStates));
    }
  }

  CommonFlags common_;
  EncodeFlags flags_;
  std::vector<std::string> ids_;
  std::vector<std::string> masks_;

  int64_t num_sequences_ = 0;
  Tensor states_;  // with --output: [tokens, hidden]
};

}  // namespace

CommandInfo EncodeCommandInfo() {
  return {.name = "encode",
          .summary = "Shows the hidden states of texts or token ids",
          .arguments = "[TEXT ...]",
          .details =
              "Sequences are the --ids, then the arguments, then the lines of --file. A lone - "
              "stands for "
              "the lines\nof standard input, and so does a command line without sequences. --json "
              "writes "
              "a line of JSON for each\nsequence; --output writes one matrix [tokens, hidden], "
              "sequence "
              "after sequence.\n\n  attendant encode \"A man eats.\"\n"
              "  attendant encode --ids 101,7592,102 --json\n",
          .make = []() -> std::unique_ptr<Command> { return std::make_unique<EncodeCommand>(); }};
}

}  // namespace attendant::client
