// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "client/cli/command.h"
#include "client/cli/commands/encode_flags.h"
#include "client/cli/format.h"
#include "client/client.h"
#include "client/flags/flag_parser.h"

namespace attendant::client {

// A text with the answer that has its results.
struct AnsweredText {
  const std::string& text;
  const EncodeResult& result;
  size_t index;  // of its sequence in `result`

  const SequenceInfo& info() const { return result.sequences[index]; }
};

// A command that sends texts and shows the results of each, with --json as an object on a line.
class TextsCommand : public Command {
 public:
  // The flags of all such commands; a derived class adds its own before.
  void AddFlags(FlagParser& flags) override;
  int Run(std::span<const std::string> arguments, Io& io) final;

 protected:
  // Sets in `prototype` what the requests ask for.
  virtual void Ask(EncodeRequest& prototype) = 0;
  // Called once, before the first Check: the model has answered, so the server can describe it.
  virtual absl::Status Learn(Client& /*client*/, const EncodeRequest& /*request*/) {
    return absl::OkStatus();
  }
  // INTERNAL when an answer lacks what Ask asked for.
  virtual absl::Status Check(const EncodeResult& result) const = 0;
  // Adds the results to an object that has the text.
  virtual void AddJson(const AnsweredText& answered, FloatJson& json) const = 0;
  virtual void Write(const AnsweredText& answered, Io& io) const = 0;

 private:
  absl::Status Send(Client& client, std::span<const std::string> arguments, Io& io);

  CommonFlags common_;
  TextFlags flags_;
};

}  // namespace attendant::client
