// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/commands/encode_flags.h"
#include "client/cli/commands/texts_command.h"
#include "client/cli/format.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using Range = std::pair<int32_t, int32_t>;  // of code points

// A token and what is likely there.
struct Line {
  int64_t token = 0;
  std::string string;
  std::optional<Range> range;                       // if asked for
  std::vector<std::pair<std::string, float>> best;  // the likeliest first
};

class TokensCommand : public TextsCommand {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.AddSwitch("fill_mask", &fill_mask_,
                    "Show the likeliest tokens at mask tokens, instead of labels of all tokens");
    flags.AddNumber("top", &top_, "N", {1}, "Most labels or tokens to show for each token");
    flags.AddSwitch("raw", &raw_, "Show the model's logits as they are");
    flags.AddSwitch("offsets", &offsets_,
                    "Show the code points of the text that a token comes from");
    TextsCommand::AddFlags(flags);
  }

 private:
  void Ask(EncodeRequest& prototype) override {
    prototype.token_strings = true;
    prototype.token_offsets = offsets_;
    if (fill_mask_) {
      prototype.fill_mask = FillMaskOptions{.top_k = top_, .raw = raw_};
    } else {
      prototype.token_scores = TokenScoreOptions{.raw = raw_};
    }
  }

  absl::Status Learn(Client& client, const EncodeRequest& request) override {
    if (fill_mask_) return absl::OkStatus();
    ATTENDANT_ASSIGN_OR_RETURN(const ModelInfo model,
                               client.Describe(request.model, request.model_version));
    labels_ = model.token_labels;
    return absl::OkStatus();
  }

  absl::Status Check(const EncodeResult& result) const override {
    const std::vector<int64_t>& shape = result.token_scores.shape;
    if (fill_mask_ ? result.fill_mask.size() == result.sequences.size()
                   : !shape.empty() && shape[1] == static_cast<int64_t>(labels_.size())) {
      return absl::OkStatus();
    }
    return absl::InternalError("the answer does not have what was asked for");
  }

  static std::string StringOf(const SequenceInfo& info, size_t token) {
    return token < info.token_strings.size() ? info.token_strings[token] : std::string();
  }

  static std::optional<Range> RangeOf(const SequenceInfo& info, size_t token) {
    if (token >= info.token_offsets.size()) return std::nullopt;
    return info.token_offsets[token];
  }

  std::vector<Line> Lines(const AnsweredText& answered) const {
    return fill_mask_ ? Masks(answered) : Labels(answered);
  }

  std::vector<Line> Labels(const AnsweredText& answered) const {
    size_t row = 0;  // of the text's first token
    for (const SequenceInfo& before : std::span(answered.result.sequences).first(answered.index)) {
      row += static_cast<size_t>(before.tokens);
    }
    const SequenceInfo& info = answered.info();
    std::vector<Line> lines;
    for (size_t token = 0; token < static_cast<size_t>(info.tokens); ++token) {
      const std::span<const float> scores = Row(answered.result.token_scores, row + token);
      Line line{.token = static_cast<int64_t>(token),
                .string = StringOf(info, token),
                .range = RangeOf(info, token),
                .best = {}};
      for (const size_t label : ByScore(scores, static_cast<size_t>(top_))) {
        line.best.emplace_back(labels_[label], scores[label]);
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }

  static std::vector<Line> Masks(const AnsweredText& answered) {
    const MaskPredictions& predictions = answered.result.fill_mask[answered.index];
    const auto columns = static_cast<size_t>(predictions.scores.shape[1]);
    std::vector<Line> lines;
    for (size_t mask = 0; mask < predictions.mask_tokens.size(); ++mask) {
      const int32_t token = predictions.mask_tokens[mask];
      Line line{.token = token,
                .string = StringOf(answered.info(), static_cast<size_t>(token)),
                .range = RangeOf(answered.info(), static_cast<size_t>(token)),
                .best = {}};
      for (size_t i = mask * columns; i < (mask + 1) * columns; ++i) {
        line.best.emplace_back(predictions.token_strings.empty()
                                   ? absl::StrCat(predictions.token_ids[i])
                                   : predictions.token_strings[i],
                               predictions.scores.values[i]);
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }

  void Write(const AnsweredText& answered, Io& io) const override {
    io.out << OneLine(answered.text, kTextWidth) << (answered.info().truncated ? " (cut)" : "")
           << "\n";
    for (const Line& line : Lines(answered)) {
      std::string best;
      for (const auto& [name, score] : line.best) {
        absl::StrAppendFormat(&best, "  %s %.5f", OneLine(name, kTextWidth), score);
      }
      std::string range;
      if (line.range) range = absl::StrFormat(" %4d %4d ", line.range->first, line.range->second);
      io.out << absl::StreamFormat("  %4d %s %-16s%s\n", line.token, range,
                                   OneLine(line.string, 16), best);
    }
  }

  void AddJson(const AnsweredText& answered, FloatJson& json) const override {
    FloatJson& tokens = json["tokens"] = FloatJson::array();
    for (const Line& line : Lines(answered)) {
      FloatJson best = FloatJson::array();
      for (const auto& [name, score] : line.best) {
        best.push_back({{fill_mask_ ? "token" : "label", name}, {"score", score}});
      }
      FloatJson token = {{"token", line.token},
                         {"string", line.string},
                         {fill_mask_ ? "predictions" : "labels", best}};
      if (line.range) {
        token["begin"] = line.range->first;
        token["end"] = line.range->second;
      }
      tokens.push_back(std::move(token));
    }
  }

  static constexpr size_t kTextWidth = 70;

  bool fill_mask_ = false;
  int32_t top_ = 1;
  bool raw_ = false;
  bool offsets_ = false;
  std::vector<std::string> labels_;
};

}  // namespace

CommandInfo TokensCommandInfo() {
  return {
      .name = "tokens",
      .summary = "Labels the tokens of texts, or fills in masks",
      .arguments = "[TEXT ...]",
      .details =
          "Needs a classifier of tokens, or with --fill_mask a masked language model. Texts are "
          "the arguments, then the\nlines of --file. A lone - stands for the lines of standard "
          "input, "
          "and so does a command line without texts.\n--json writes a line of JSON for each "
          "text.\n\n  attendant tokens \"Ada lives in London.\"\n  attendant tokens --fill_mask "
          "--top 5 \"Paris is the [MASK] of France.\"\n",
      .make = []() -> std::unique_ptr<Command> { return std::make_unique<TokensCommand>(); }};
}

}  // namespace attendant::client
