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

constexpr size_t kShownWeights = 10;

class SparseCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.Add("top", &options_.top_k, "N", "Most weights of a text; 0: all above zero");
    flags_.AddTo(flags);
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    return RunWithClient(common_, io, [&](Client& client) { return Embed(client, arguments, io); });
  }

 private:
  absl::Status Embed(Client& client, std::span<const std::string> arguments, Io& io) {
    ATTENDANT_ASSIGN_OR_RETURN(EncodeRequest prototype, flags_.Prototype(client));
    prototype.sparse = options_;
    prototype.token_strings = true;
    return flags_.SendTexts(client, std::move(prototype), arguments, io,
                            [&](const EncodeRequest& request, const EncodeResult& result) {
                              return Take(request, result, io);
                            });
  }

  absl::Status Take(const EncodeRequest& request, const EncodeResult& result, Io& io) {
    if (result.sparse.size() != request.sequences.size()) {
      return absl::InternalError("the answer has no sparse vectors");
    }
    for (size_t i = 0; i < request.sequences.size(); ++i, ++num_texts_) {
      const std::string& text = std::get<std::string>(request.sequences[i]);
      const bool truncated = result.sequences[i].truncated;
      if (common_.json) {
        WriteJson(text, truncated, result.sparse[i], io);
      } else {
        WriteText(text, truncated, result.sparse[i], io);
      }
    }
    return io.out ? absl::OkStatus() : absl::FailedPreconditionError("cannot write the output");
  }

  void WriteJson(const std::string& text, bool truncated, const SparseVector& vector,
                 Io& io) const {
    io.out << Dump(FloatJson{{"index", num_texts_},
                             {"text", text},
                             {"truncated", truncated},
                             {"ids", vector.ids},
                             {"weights", vector.weights},
                             {"tokens", vector.token_strings}})
           << "\n";
  }

  // The largest weights come first.
  void WriteText(const std::string& text, bool truncated, const SparseVector& vector,
                 Io& io) const {
    std::vector<size_t> order(vector.ids.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&vector](size_t a, size_t b) {
      return vector.weights[a] > vector.weights[b];
    });
    io.out << absl::StreamFormat("%d weights%s  %s\n", vector.ids.size(), truncated ? " (cut)" : "",
                                 OneLine(text, kTextWidth));
    order.resize(std::min(order.size(), kShownWeights));
    for (const size_t i : order) {
      const std::string token =
          i < vector.token_strings.size() ? vector.token_strings[i] : std::string();
      io.out << absl::StreamFormat("  %9.5f  %6d  %s\n", vector.weights[i], vector.ids[i],
                                   OneLine(token, kTextWidth));
    }
  }

  static constexpr size_t kTextWidth = 70;

  CommonFlags common_;
  TextFlags flags_;
  SparseOptions options_;
  int64_t num_texts_ = 0;
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
