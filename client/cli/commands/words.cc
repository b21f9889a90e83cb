// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/commands/encode_flags.h"
#include "client/cli/format.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr size_t kShownWidth = 70;

class WordsCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.AddNumber("top", &top_, "N", {1}, "Most words of a text to show; --json has all");
    flags_.AddTo(flags);
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    return RunWithClient(common_, io, [&](Client& client) { return Weigh(client, arguments, io); });
  }

 private:
  absl::Status Weigh(Client& client, std::span<const std::string> arguments, Io& io) {
    ATTENDANT_ASSIGN_OR_RETURN(EncodeRequest prototype, flags_.Prototype(client));
    prototype.word_weights = true;
    return flags_.SendTexts(client, std::move(prototype), arguments, io,
                            [&](const EncodeRequest& request, const EncodeResult& result) {
                              return Take(request, result, io);
                            });
  }

  absl::Status Take(const EncodeRequest& request, const EncodeResult& result, Io& io) {
    if (result.words.size() != request.sequences.size()) {
      return absl::InternalError("the answer has no words");
    }
    for (size_t i = 0; i < request.sequences.size(); ++i, ++num_texts_) {
      const std::string& text = std::get<std::string>(request.sequences[i]);
      if (common_.json) {
        WriteJson(text, result.sequences[i].truncated, result.words[i], io);
      } else {
        WriteText(text, result.sequences[i], result.words[i], io);
      }
    }
    return io.out ? absl::OkStatus() : absl::FailedPreconditionError("cannot write the output");
  }

  void WriteJson(const std::string& text, bool truncated, const WordWeights& words, Io& io) const {
    io.out << Dump(FloatJson{{"index", num_texts_},
                             {"text", text},
                             {"truncated", truncated},
                             {"words", words.words},
                             {"weights", words.weights}})
           << "\n";
  }

  // The largest weights come first.
  void WriteText(const std::string& text, const SequenceInfo& info, const WordWeights& words,
                 Io& io) const {
    io.out << absl::StreamFormat("%d words%s  %s\n", words.words.size(), CutNote(info),
                                 OneLine(text, kShownWidth));
    std::vector<size_t> order(words.words.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&words](size_t a, size_t b) { return words.weights[a] > words.weights[b]; });
    order.resize(std::min(order.size(), top_));
    for (const size_t i : order) {
      io.out << absl::StreamFormat("  %9.5f  %s\n", words.weights[i],
                                   OneLine(words.words[i], kShownWidth));
    }
  }

  CommonFlags common_;
  TextFlags flags_;
  size_t top_ = 10;
  int64_t num_texts_ = 0;
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
