// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/commands/encode_flags.h"
#include "client/cli/format.h"
#include "client/cli/input.h"
#include "client/ordered_encoder.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

class RerankCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.Add("query", &query_, "TEXT", "What the passages are compared with; required");
    flags.Add("top", &top_, "N", "Most passages to show; 0 shows all");
    flags.AddChoice<PairTruncation>("pair_truncation", &pair_truncation_,
                                    {{"longest_first", PairTruncation::kLongestFirst},
                                     {"only_first", PairTruncation::kOnlyFirst},
                                     {"only_second", PairTruncation::kOnlySecond}},
                                    "Text to cut when query and passage are too long together: the "
                                    "longer one first, the query, or the passage");
    flags.AddSwitch("raw", &raw_, "Show the model's logits as they are");
    flags_.AddTo(flags);
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    if (query_.empty()) return UsageError("--query is missing", io);
    return RunWithClient(common_, io,
                         [&](Client& client) { return Rerank(client, arguments, io); });
  }

 private:
  struct Passage {
    size_t index;
    float score;
    std::string text;
    bool truncated;
  };

  absl::Status Rerank(Client& client, std::span<const std::string> arguments, Io& io) {
    ATTENDANT_RETURN_IF_ERROR(CheckFlagUtf8("query", query_));
    ATTENDANT_ASSIGN_OR_RETURN(EncodeRequest prototype, flags_.Prototype(client));
    prototype.pair_truncation = pair_truncation_;
    prototype.scores = raw_ ? ScoreActivation::kNone : ScoreActivation::kModelDefault;
    OrderedEncoder encoder(client, std::move(prototype), flags_.limits,
                           [this](const EncodeRequest& request, const EncodeResult& result) {
                             return Take(request, result);
                           });
    ATTENDANT_RETURN_IF_ERROR(ForEachText(arguments, flags_.file, io, [&](std::string text) {
      return encoder.Add(TextPair{.first = query_, .second = std::move(text)});
    }));
    ATTENDANT_RETURN_IF_ERROR(encoder.Finish());
    if (passages_.empty()) return absl::FailedPreconditionError("there are no passages");
    Write(io);
    return absl::OkStatus();
  }

  absl::Status Take(const EncodeRequest& request, const EncodeResult& result) {
    if (result.scores.shape.empty()) return absl::InternalError("the answer has no scores");
    if (result.scores.shape[1] != 1) {
      return absl::FailedPreconditionError(absl::StrCat("the model is no reranker: it has ",
                                                        result.scores.shape[1], " labels, not 1"));
    }
    for (size_t i = 0; i < request.sequences.size(); ++i) {
      passages_.push_back({.index = passages_.size(),
                           .score = result.scores.values[i],
                           .text = std::get<TextPair>(request.sequences[i]).second,
                           .truncated = result.sequences[i].truncated});
    }
    return absl::OkStatus();
  }

  void Write(Io& io) {
    std::stable_sort(passages_.begin(), passages_.end(),
                     [](const Passage& a, const Passage& b) { return Before(a.score, b.score); });
    if (top_ > 0 && passages_.size() > top_) passages_.resize(top_);
    for (const Passage& passage : passages_) {
      if (common_.json) {
        io.out << Dump(FloatJson{{"index", passage.index},
                                 {"score", passage.score},
                                 {"text", passage.text},
                                 {"truncated", passage.truncated}})
               << "\n";
      } else {
        io.out << absl::StreamFormat("%9.5f  %s%s\n", passage.score,
                                     OneLine(passage.text, kShownTextWidth),
                                     passage.truncated ? " (cut)" : "");
      }
    }
  }

  CommonFlags common_;
  TextFlags flags_;
  std::string query_;
  size_t top_ = 0;
  bool raw_ = false;
  PairTruncation pair_truncation_ = PairTruncation::kLongestFirst;
  std::vector<Passage> passages_;
};

}  // namespace

CommandInfo RerankCommandInfo() {
  return {
      .name = "rerank",
      .summary = "Sorts passages by how well they answer a query",
      .arguments = "--query TEXT [PASSAGE ...]",
      .details =
          "Needs a reranker, which is a model with one label, or a model with vectors of tokens: "
          "ColBERT, BGE-M3. Passages are\nthe arguments, then the lines of --file. A lone - stands "
          "for the lines of standard input, and so does a command line\nwithout passages. The best "
          "passage comes first. --json writes a line of JSON for each passage, with its place in "
          "the\ninput.\n\n  attendant rerank --query \"How "
          "tall is the tower?\" \"It has 330 metres.\" \"It rains.\"\n  attendant rerank "
          "--query \"How tall?\" --top 10 --json < passages.txt\n",
      .make = []() -> std::unique_ptr<Command> { return std::make_unique<RerankCommand>(); }};
}

}  // namespace attendant::client
