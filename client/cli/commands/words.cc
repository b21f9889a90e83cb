// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/commands/texts_command.h"
#include "client/cli/format.h"

namespace attendant::client {
namespace {

constexpr size_t kShownWidth = 70;

class WordsCommand : public TextsCommand {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.AddNumber("top", &top_, "N", {1}, "Most words of a text to show; --json has all");
    TextsCommand::AddFlags(flags);
  }

 private:
  void Ask(EncodeRequest& prototype) override { prototype.word_weights = true; }

  absl::Status Check(const EncodeResult& result) const override {
    if (result.words.size() == result.sequences.size()) return absl::OkStatus();
    return absl::InternalError("the answer has no words");
  }

  void AddJson(const AnsweredText& answered, FloatJson& json) const override {
    const WordWeights& words = answered.result.words[answered.index];
    json["words"] = words.words;
    json["weights"] = words.weights;
  }

  void Write(const AnsweredText& answered, Io& io) const override {
    const WordWeights& words = answered.result.words[answered.index];
    io.out << absl::StreamFormat("%d words%s  %s\n", words.words.size(), CutNote(answered.info()),
                                 OneLine(answered.text, kShownWidth));
    for (const size_t i : ByScore(words.weights, top_)) {
      io.out << absl::StreamFormat("  %9.5f  %s\n", words.weights[i],
                                   OneLine(words.words[i], kShownWidth));
    }
  }

  size_t top_ = 10;
};

}  // namespace

CommandInfo WordsCommandInfo() {
  return {
      .name = "words",
      .summary = "Weighs the words of texts by attention, as BM42 does",
      .arguments = "[TEXT ...]",
      .details =
          "Needs a model with a WordPiece tokenizer. Texts are the arguments, then the lines of "
          "--file. A lone - stands\nfor the lines of standard input, and so does a command line "
          "without texts. Shows the words that [CLS]\nattends to most in the last layer; --json "
          "writes a line of JSON with all of them, in their order. For BM42,\ndrop stop words, "
          "stem, keep the largest weight of each stem, and take log(1 + weight)^0.5.\n\n  "
          "attendant words \"A man is eating pasta.\"\n  attendant words --json < "
          "passages.txt\n",
      .make = []() -> std::unique_ptr<Command> { return std::make_unique<WordsCommand>(); }};
}

}  // namespace attendant::client
