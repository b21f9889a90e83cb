// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/commands/encode_flags.h"
#include "client/cli/format.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

class ClassifyCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.AddNumber("top", &top_, "N", {1}, "Most labels to show for each text");
    flags.AddSwitch("raw", &raw_, "Show the model's logits as they are");
    flags_.AddTo(flags);
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    return RunWithClient(common_, io,
                         [&](Client& client) { return Classify(client, arguments, io); });
  }

 private:
  absl::Status Classify(Client& client, std::span<const std::string> arguments, Io& io) {
    ATTENDANT_ASSIGN_OR_RETURN(EncodeRequest prototype, flags_.Prototype(client));
    prototype.scores = raw_ ? ScoreActivation::kNone : ScoreActivation::kModelDefault;
    // The server says what is wrong with a model without labels.
    ATTENDANT_ASSIGN_OR_RETURN(const ModelInfo model, DescribeModel(client, prototype.model));
    labels_ = model.labels;
    return flags_.SendTexts(client, std::move(prototype), arguments, io,
                            [&](const EncodeRequest& request, const EncodeResult& result) {
                              return Take(request, result, io);
                            });
  }

  absl::Status Take(const EncodeRequest& request, const EncodeResult& result, Io& io) {
    const std::vector<int64_t>& shape = result.scores.shape;
    if (shape.empty() || shape[1] != static_cast<int64_t>(labels_.size())) {
      return absl::InternalError("the answer's scores do not fit the model's labels");
    }
    for (size_t i = 0; i < request.sequences.size(); ++i, ++num_texts_) {
      Write(std::get<std::string>(request.sequences[i]), Row(result.scores, i),
            result.sequences[i].truncated, io);
    }
    return io.out ? absl::OkStatus() : absl::FailedPreconditionError("cannot write the output");
  }

  void Write(const std::string& text, std::span<const float> scores, bool truncated, Io& io) const {
    std::vector<size_t> order(scores.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [scores](size_t a, size_t b) { return scores[a] > scores[b]; });
    order.resize(std::min(order.size(), top_));
    if (common_.json) {
      FloatJson labels = FloatJson::array();
      for (const size_t label : order) {
        labels.push_back({{"label", labels_[label]}, {"score", scores[label]}});
      }
      io.out << Dump(FloatJson{{"index", num_texts_},
                               {"text", text},
                               {"truncated", truncated},
                               {"labels", labels}})
             << "\n";
      return;
    }
    std::string line;
    for (const size_t label : order) {
      absl::StrAppendFormat(&line, "%s %.5f  ", OneLine(labels_[label], kShownTextWidth),
                            scores[label]);
    }
    io.out << line << OneLine(text, kShownTextWidth) << (truncated ? " (cut)" : "") << "\n";
  }

  CommonFlags common_;
  TextFlags flags_;
  size_t top_ = 3;
  bool raw_ = false;
  std::vector<std::string> labels_;
  int64_t num_texts_ = 0;
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
