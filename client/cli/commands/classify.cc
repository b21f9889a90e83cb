// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/commands/encode_flags.h"
#include "client/cli/commands/texts_command.h"
#include "client/cli/format.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

class ClassifyCommand : public TextsCommand {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.AddNumber("top", &top_, "N", {1}, "Most labels to show for each text");
    flags.AddSwitch("raw", &raw_, "Show the model's logits as they are");
    TextsCommand::AddFlags(flags);
  }

 private:
  void Ask(EncodeRequest& prototype) override {
    prototype.scores = raw_ ? ScoreActivation::kNone : ScoreActivation::kModelDefault;
  }

  absl::Status Learn(Client& client, const EncodeRequest& request) override {
    ATTENDANT_ASSIGN_OR_RETURN(const ModelInfo model,
                               client.Describe(request.model, request.model_version));
    labels_ = model.labels;
    return absl::OkStatus();
  }

  absl::Status Check(const EncodeResult& result) const override {
    const std::vector<int64_t>& shape = result.scores.shape;
    if (!shape.empty() && shape[1] == static_cast<int64_t>(labels_.size())) {
      return absl::OkStatus();
    }
    return absl::InternalError("the answer's scores do not fit the model's labels");
  }

  void AddJson(const AnsweredText& answered, FloatJson& json) const override {
    const std::span<const float> scores = Row(answered.result.scores, answered.index);
    FloatJson& labels = json["labels"] = FloatJson::array();
    for (const size_t label : ByScore(scores, top_)) {
      labels.push_back({{"label", labels_[label]}, {"score", scores[label]}});
    }
  }

  void Write(const AnsweredText& answered, Io& io) const override {
    const std::span<const float> scores = Row(answered.result.scores, answered.index);
    for (const size_t label : ByScore(scores, top_)) {
      io.out << absl::StreamFormat("%s %.5f  ", OneLine(labels_[label], kShownTextWidth),
                                   scores[label]);
    }
    io.out << OneLine(answered.text, kShownTextWidth) << (answered.info().truncated ? " (cut)" : "")
           << "\n";
  }

  size_t top_ = 3;
  bool raw_ = false;
  std::vector<std::string> labels_;
};

}  // namespace

CommandInfo ClassifyCommandInfo() {
  return {
      .name = "classify",
      .summary = "Labels texts",
      .arguments = "[TEXT ...]",
      .details =
          "Needs a classifier of sequences. Texts are the arguments, then the lines of --file. A "
          "lone - stands for the\nlines of standard input, and so does a command line without "
          "texts. The likeliest label comes first. --json\nwrites a line of JSON for each "
          "text.\n\n  attendant classify \"What a film.\" \"Never again.\"\n  attendant "
          "classify --json --top 1 < reviews.txt\n",
      .make = []() -> std::unique_ptr<Command> { return std::make_unique<ClassifyCommand>(); }};
}

}  // namespace attendant::client
