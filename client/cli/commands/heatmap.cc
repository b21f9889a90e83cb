// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/commands/encode_flags.h"
#include "client/cli/files/npy.h"
#include "client/cli/files/output_file.h"
#include "client/cli/format.h"
#include "client/cli/input.h"
#include "client/heatmap/attention_maps.h"
#include "client/heatmap/layout.h"
#include "client/heatmap/png.h"
#include "client/heatmap/svg.h"
#include "client/heatmap/terminal.h"
#include "client/heatmap/text.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr double kMinScale = 0.1, kMaxScale = 16;

// "all" -> {}, "0,3,5-7" -> {0, 3, 5, 6, 7}
absl::StatusOr<std::vector<int32_t>> ParseHeads(const std::string& text) {
  constexpr int32_t kMostHeads = 4096;
  std::vector<int32_t> heads;
  if (text == "all") return heads;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, absl::MaxSplits('-', 1));
    int32_t first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
        first < 0 || last < first || last >= kMostHeads) {
      return absl::FailedPreconditionError(absl::StrCat(
          "--heads: cannot read '", text, "': it is all, or numbers from 0 like 0,3,5-7"));
    }
    for (int32_t head = first; head <= last; ++head) heads.push_back(head);
  }
  return heads;
}

// The tokens as labels: their strings, or their ids where the server sends no strings.
std::vector<std::string> TokenLabels(const SequenceInfo& info) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < static_cast<size_t>(info.tokens); ++i) {
    const std::string token = i < info.token_strings.size() ? info.token_strings[i] : "";
    const std::string id = i < info.token_ids.size() ? absl::StrCat("#", info.token_ids[i]) : "?";
    labels.push_back(token.empty() ? id : Printable(token));
  }
  return labels;
}

class HeatmapCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    model_.AddTo(flags);
    prompt_.AddTo(flags);
    flags.Add("layer", &layer_, "N", "The layer, from 0, or last");
    flags.Add("heads", &heads_, "LIST", "all, or numbers from 0: 0,3,5-7");
    flags.AddSwitch("average", &average_, "One map: the mean of the heads");
    flags.Add("ids", &ids_, "ID,ID,...", "Token ids, special tokens included, instead of a text");
    flags.Add("mask", &mask_, "0|1,...", "The attention mask of --ids");
    flags.Section("Output");
    flags.Add("out", &out_, "FILE",
              "Write a picture, .png or .svg; without it, draw in the terminal");
    flags.AddNumber("scale", &scale_, "FACTOR", {kMinScale, kMaxScale},
                    "Pixels of a PNG for each unit of the SVG");
    flags.Add("npy", &npy_, "FILE.npy",
              "Write the weights to a NumPy file, [heads, tokens, tokens]");
    flags.AddChoice<std::optional<TerminalColors>>("color", &colors_,
                                                   {{"auto", std::nullopt},
                                                    {"true", TerminalColors::kTrue},
                                                    {"256", TerminalColors::k256},
                                                    {"none", TerminalColors::kNone}},
                                                   "Colours of the drawing; auto is what the "
                                                   "terminal can show, and none in a pipe");
    flags.Add("columns", &columns_, "N", "Width of the drawing; 0 is the terminal's width");
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    const absl::Status status = CheckFlags();
    if (!status.ok()) return UsageError(status.message(), io);
    return RunWithClient(common_, io, [&](Client& client) { return Show(client, arguments, io); });
  }

 private:
  // Finds mistakes before the server is asked.
  absl::Status CheckFlags() const {
    if (!out_.empty() && !absl::EndsWithIgnoreCase(out_, ".png") &&
        !absl::EndsWithIgnoreCase(out_, ".svg")) {
      return absl::FailedPreconditionError(
          absl::StrCat("--out: '", out_, "' ends neither in .png nor in .svg"));
    }
    int32_t layer = 0;
    if (layer_ != "last" && (!absl::SimpleAtoi(layer_, &layer) || layer < 0)) {
      return absl::FailedPreconditionError(
          absl::StrCat("--layer: cannot read '", layer_,
                       "': a picture is of one layer, a number from 0, or last"));
    }
    if (!mask_.empty() && ids_.empty()) {
      return absl::FailedPreconditionError("--mask needs --ids");
    }
    ATTENDANT_RETURN_IF_ERROR(CheckWritable(npy_));
    ATTENDANT_RETURN_IF_ERROR(CheckWritable(out_));
    ATTENDANT_RETURN_IF_ERROR(prompt_.Name().status());
    return ParseHeads(heads_).status();
  }

  absl::Status Show(Client& client, std::span<const std::string> arguments, Io& io) {
    ATTENDANT_ASSIGN_OR_RETURN(EncodeRequest request, MakeRequest(client, arguments, io));
    ATTENDANT_ASSIGN_OR_RETURN(EncodeResult result, client.Encode(request));
    ATTENDANT_RETURN_IF_ERROR(CheckAnswer(request, result));
    AttentionMaps maps = MakeMaps(request, result);
    if (average_) maps = Average(maps);
    return Write(request, result, maps, io);
  }

  // The answer must have the weights of one sequence, and of as many heads as were asked for.
  static absl::Status CheckAnswer(const EncodeRequest& request, const EncodeResult& result) {
    const absl::Status wrong =
        absl::InternalError("the answer has not the attention weights asked for");
    if (result.sequences.size() != 1 || result.attention_weights.size() != 1) return wrong;
    const std::vector<int64_t>& shape = result.attention_weights[0].shape;
    const size_t heads = request.attention_weights->heads.size();
    const bool as_asked = heads == 0 || shape[1] == static_cast<int64_t>(heads);
    return shape[0] == 1 && shape[1] > 0 && shape[2] > 0 && as_asked ? absl::OkStatus() : wrong;
  }

  absl::StatusOr<EncodeRequest> MakeRequest(Client& client, std::span<const std::string> arguments,
                                            Io& io) const {
    EncodeRequest request{.token_ids = true, .token_strings = true};
    ATTENDANT_ASSIGN_OR_RETURN(request.prompt_name, prompt_.Name());
    ATTENDANT_RETURN_IF_ERROR(AddSequence(arguments, io, request));
    ATTENDANT_RETURN_IF_ERROR(model_.Choose(client, request));
    ATTENDANT_ASSIGN_OR_RETURN(int32_t layer, FindLayer(client, request));
    ATTENDANT_ASSIGN_OR_RETURN(std::vector<int32_t> heads, ParseHeads(heads_));
    request.attention_weights = AttentionOptions{.layers = {layer}, .heads = std::move(heads)};
    return request;
  }

  absl::Status AddSequence(std::span<const std::string> arguments, Io& io,
                           EncodeRequest& request) const {
    if (!ids_.empty()) {
      ATTENDANT_ASSIGN_OR_RETURN(TokenIds ids, ParseIds(ids_, mask_));
      request.sequences.push_back(std::move(ids));
    }
    if (ids_.empty() || !arguments.empty()) {
      ATTENDANT_RETURN_IF_ERROR(ForEachText(arguments, "", io, [&](std::string text) {
        request.sequences.push_back(std::move(text));
        return request.sequences.size() > 1 ? absl::FailedPreconditionError("one text at a time")
                                            : absl::OkStatus();
      }));
    }
    return request.sequences.empty() ? absl::FailedPreconditionError("there is no text")
                                     : absl::OkStatus();
  }

  absl::StatusOr<int32_t> FindLayer(Client& client, const EncodeRequest& request) const {
    int32_t layer = 0;
    if (absl::SimpleAtoi(layer_, &layer)) return layer;
    ATTENDANT_ASSIGN_OR_RETURN(const ModelInfo model,
                               client.Describe(request.model, request.model_version));
    if (model.layers > 0) return static_cast<int32_t>(model.layers - 1);
    return absl::UnavailableError(absl::StrCat("version ", model.version, " of the model ",
                                               model.name, " is ", model.state,
                                               ": its layers are not known"));
  }

  AttentionMaps MakeMaps(const EncodeRequest& request, EncodeResult& result) const {
    const SequenceInfo& info = result.sequences[0];
    Tensor& weights = result.attention_weights[0];
    AttentionMaps maps{.title = Printable(absl::StrCat(request.model, ", layer ", Layer(request))),
                       .subtitle = "",
                       .tokens = TokenLabels(info),
                       .names = {},
                       .weights = std::move(weights.values)};
    if (const auto* text = std::get_if<std::string>(&request.sequences[0])) {
      maps.subtitle = Printable(OneLine(*text, 200));
    }
    if (info.truncated) absl::StrAppend(&maps.subtitle, " (cut)");
    for (const int32_t head : Heads(request, weights)) {
      maps.names.push_back(absl::StrCat("head ", head));
    }
    return maps;
  }

  static int32_t Layer(const EncodeRequest& request) {
    return request.attention_weights->layers[0];
  }

  // The heads that were asked for, "all" spelt out.
  static std::vector<int32_t> Heads(const EncodeRequest& request, const Tensor& weights) {
    std::vector<int32_t> heads = request.attention_weights->heads;
    if (!heads.empty()) return heads;
    for (int32_t head = 0; head < weights.shape[1]; ++head) heads.push_back(head);
    return heads;
  }

  absl::Status Write(const EncodeRequest& request, const EncodeResult& result,
                     const AttentionMaps& maps, Io& io) const {
    if (!npy_.empty()) {
      ATTENDANT_RETURN_IF_ERROR(
          WriteNpy(npy_, {maps.maps(), maps.len(), maps.len()}, maps.weights));
    }
    if (!out_.empty()) {
      ATTENDANT_RETURN_IF_ERROR(WritePicture(maps));
    }
    if (common_.json) {
      WriteJson(request, result, maps, io);
    } else if (out_.empty() && npy_.empty()) {
      io.out << DrawInTerminal(maps, colors_.value_or(io.out_colors),
                               columns_ > 0 ? columns_ : io.out_columns);
    }
    return io.out ? absl::OkStatus() : absl::FailedPreconditionError("cannot write the output");
  }

  absl::Status WritePicture(const AttentionMaps& maps) const {
    const Figure figure = LayOutHeatmap(maps, TextRuler());
    std::string bytes;
    if (absl::EndsWithIgnoreCase(out_, ".svg")) {
      bytes = ToSvg(figure);
    } else {
      absl::StatusOr<std::string> png = ToPng(figure, scale_);
      if (!png.ok()) {
        return absl::FailedPreconditionError(
            absl::StrCat(png.status().message(), ": try a smaller --scale or fewer heads"));
      }
      bytes = *std::move(png);
    }
    return WriteFile(out_, bytes);
  }

  // Leaves out the weights that go to a file.
  void WriteJson(const EncodeRequest& request, const EncodeResult& result,
                 const AttentionMaps& maps, Io& io) const {
    const SequenceInfo& info = result.sequences[0];
    FloatJson json{{"model", request.model}};
    if (const auto* text = std::get_if<std::string>(&request.sequences[0])) json["text"] = *text;
    json["layer"] = Layer(request);
    json["heads"] = Heads(request, result.attention_weights[0]);
    json["averaged"] = average_;
    json["truncated"] = info.truncated;
    json["token_ids"] = info.token_ids;
    json["tokens"] = info.token_strings;
    if (npy_.empty()) {
      FloatJson& weights = json["weights"] = FloatJson::array();
      const auto len = static_cast<size_t>(maps.len());
      for (int64_t map = 0; map < maps.maps(); ++map) {
        FloatJson& rows = weights.emplace_back(FloatJson::array());
        for (size_t row = 0; row < len; ++row)
          rows.push_back(maps.map(map).subspan(row * len, len));
      }
    }
    io.out << Dump(json) << "\n";
  }

  CommonFlags common_;
  ModelFlags model_;
  PromptFlags prompt_;
  std::string layer_ = "last", heads_ = "all", out_, npy_, ids_, mask_;
  bool average_ = false;
  double scale_ = 2;
  std::optional<TerminalColors> colors_;
  int columns_ = 0;
};

}  // namespace

CommandInfo HeatmapCommandInfo() {
  return {.name = "heatmap",
          .summary = "Shows which tokens attend to which",
          .arguments = "[TEXT]",
          .details =
              "Draws the attention weights of a layer, a map for each head. A row is a token that "
              "attends; its columns are\nthe tokens that it attends to, and sum to 1. All maps "
              "share one colour scale. --json writes the numbers.\n\n"
              "  attendant heatmap \"The cat sat on the mat\" --layer 3 --out map.png\n"
              "  attendant heatmap --heads 0,4-6 --average \"The cat sat on the mat\"\n",
          .make = []() -> std::unique_ptr<Command> { return std::make_unique<HeatmapCommand>(); }};
}

}  // namespace attendant::client
