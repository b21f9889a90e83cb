// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/commands/texts_command.h"
#include "client/cli/format.h"

namespace attendant::client {
namespace {

constexpr size_t kShownWeights = 10;

class SparseCommand : public TextsCommand {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.Add("top", &options_.top_k, "N", "Most weights of a text; 0: all above zero");
    TextsCommand::AddFlags(flags);
  }

 private:
  void Ask(EncodeRequest& prototype) override {
    prototype.sparse = options_;
    prototype.token_strings = true;
  }

  absl::Status Check(const EncodeResult& result) const override {
    if (result.sparse.size() == result.sequences.size()) return absl::OkStatus();
    return absl::InternalError("the answer has no sparse vectors");
  }

  void AddJson(const AnsweredText& answered, FloatJson& json) const override {
    const SparseVector& vector = answered.result.sparse[answered.index];
    json["ids"] = vector.ids;
    json["weights"] = vector.weights;
    json["tokens"] = vector.token_strings;
  }

  void Write(const AnsweredText& answered, Io& io) const override {
    const SparseVector& vector = answered.result.sparse[answered.index];
    io.out << absl::StreamFormat("%d weights%s  %s\n", vector.ids.size(),
                                 answered.info().truncated ? " (cut)" : "",
                                 OneLine(answered.text, kTextWidth));
    for (const size_t i : ByScore(vector.weights, kShownWeights)) {
      const std::string token =
          i < vector.token_strings.size() ? vector.token_strings[i] : std::string();
      io.out << absl::StreamFormat("  %9.5f  %6d  %s\n", vector.weights[i], vector.ids[i],
                                   OneLine(token, kTextWidth));
    }
  }

  static constexpr size_t kTextWidth = 70;

  SparseOptions options_;
};

}  // namespace

CommandInfo SparseCommandInfo() {
  return {
      .name = "sparse",
      .summary = "Turns texts into weights of tokens of the vocabulary",
      .arguments = "[TEXT ...]",
      .details =
          "Needs a model that makes sparse vectors, as SPLADE. Texts are the arguments, then the "
          "lines of --file. A\nlone - stands for the lines of standard input, and so does a "
          "command line without texts. Shows the ten\nlargest weights of each text; --json writes "
          "a line of JSON with all of them.\n\n  attendant sparse \"A man is eating pasta.\"\n  "
          "attendant sparse --json --top 64 < passages.txt\n",
      .make = []() -> std::unique_ptr<Command> { return std::make_unique<SparseCommand>(); }};
}

}  // namespace attendant::client
