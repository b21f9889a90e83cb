// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/commands/encode_flags.h"
#include "client/cli/commands/similarity.h"
#include "client/cli/files/npy.h"
#include "client/cli/format.h"
#include "client/cli/input.h"
#include "client/ordered_encoder.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr size_t kShownValues = 4;
constexpr size_t kTextWidth = 60;
// A matrix of cosines of this many texts takes 16 MB and a second.
constexpr size_t kMaxSimilarityTexts = 2000;

class EmbedCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    flags_.AddTo(flags);
    flags.AddChoice<Pooling>("pooling", &pooled_.pooling,
                             {{"model", Pooling::kModelDefault},
                              {"mean", Pooling::kMean},
                              {"cls", Pooling::kCls},
                              {"max", Pooling::kMax},
                              {"last", Pooling::kLast}},
                             "How token states become one vector; model is the model's own way");
    flags.Add("dims", &pooled_.dims, "N", "Keep the first N dimensions; 0 keeps all");
    flags.AddSwitch("normalize", &normalize_,
                    "Scale embeddings to length 1; without either flag, the model decides");
    flags.AddSwitch("no-normalize", &no_normalize_, "Do not scale embeddings");
    flags.AddSwitch("similarity", &similarity_, "Show how similar the texts are, not the values");
    flags.Add("top", &top_, "N", "Most pairs that --similarity lists");
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    if (normalize_ && no_normalize_) {
      return UsageError("--normalize and --no-normalize exclude each other", io);
    }
    if (normalize_ || no_normalize_) pooled_.normalize = normalize_;
    common_.connect.max_attempts = 5;
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(common_.connect);
    if (!client.ok()) return UsageError(client.status().message(), io);
    const absl::Status status = Embed(**client, arguments, io);
    return status.ok() ? kExitOk : CallError(status, common_.connect, io);
  }

 private:
  bool keeps_all() const { return similarity_ || !flags_.output.empty(); }

  absl::Status Embed(Client& client, std::span<const std::string> arguments, Io& io) {
    ATTENDANT_ASSIGN_OR_RETURN(EncodeRequest prototype, flags_.Prototype(client));
    prototype.pooled = pooled_;
    OrderedEncoder encoder(client, std::move(prototype), flags_.limits,
                           [&](const EncodeRequest& request, const EncodeResult& result) {
                             return Take(request, result, io);
                           });
    ATTENDANT_RETURN_IF_ERROR(ForEachText(arguments, flags_.file, io, [&](std::string text) {
      return encoder.Add(std::move(text));
    }));
    ATTENDANT_RETURN_IF_ERROR(encoder.Finish());
    return Finish(io);
  }

  absl::Status Take(const EncodeRequest& request, const EncodeResult& result, Io& io) {
    const Tensor& rows = result.pooled;
    if (rows.shape.empty()) return absl::InternalError("the answer has no embeddings");
    for (size_t i = 0; i < request.sequences.size(); ++i) {
      const std::string& text = std::get<std::string>(request.sequences[i]);
      if (!keeps_all()) Write(text, result, i, io);
      if (similarity_) texts_.push_back(text);
      ++num_texts_;
    }
    if (similarity_ && texts_.size() > kMaxSimilarityTexts) {
      return absl::FailedPreconditionError(
          absl::StrCat("--similarity compares at most ", kMaxSimilarityTexts, " texts"));
    }
    if (keeps_all()) {
      embeddings_.shape = {num_texts_, rows.shape[1]};
      embeddings_.values.insert(embeddings_.values.end(), rows.values.begin(), rows.values.end());
    }
    return io.out ? absl::OkStatus() : absl::FailedPreconditionError("cannot write the output");
  }

  void Write(const std::string& text, const EncodeResult& result, size_t i, Io& io) const {
    const std::span<const float> embedding = Row(result.pooled, i);
    const SequenceInfo& info = result.sequences[i];
    if (common_.json) {
      io.out << Dump(FloatJson{{"index", num_texts_},
                               {"model", result.model},
                               {"text", text},
                               {"tokens", info.tokens},
                               {"truncated", info.truncated},
                               {"embedding", embedding}})
             << "\n";
      return;
    }
    io.out << absl::StreamFormat(
        "%s %d values, %d tokens%s  %s\n", FirstValues(embedding, kShownValues), embedding.size(),
        info.tokens, info.truncated ? " (cut)" : "", OneLine(text, kTextWidth));
  }

  absl::Status Finish(Io& io) const {
    if (num_texts_ == 0) return absl::FailedPreconditionError("there are no texts");
    if (similarity_ && common_.json) {
      FloatJson matrix = FloatJson::array();
      const Tensor cosines = CosineMatrix(embeddings_);
      for (size_t i = 0; i < texts_.size(); ++i) matrix.push_back(Row(cosines, i));
      io.out << Dump(FloatJson{{"texts", texts_}, {"cosines", matrix}}) << "\n";
    } else if (similarity_) {
      io.out << DescribeSimilarity(texts_, embeddings_, top_);
    }
    if (flags_.output.empty()) return absl::OkStatus();
    return WriteNpy(flags_.output, {num_texts_, embeddings_.shape[1]}, embeddings_.values);
  }

  CommonFlags common_;
  EncodeFlags flags_;
  PooledOptions pooled_;
  bool normalize_ = false;
  bool no_normalize_ = false;
  bool similarity_ = false;
  size_t top_ = 5;

  int64_t num_texts_ = 0;
  std::vector<std::string> texts_;  // with --similarity
  Tensor embeddings_;               // with --similarity or --output: [num_texts_, dims]
};

}  // namespace

CommandInfo EmbedCommandInfo() {
  return {.name = "embed",
          .summary = "Turns texts into embeddings",
          .arguments = "[TEXT ...]",
          .details =
              "Texts are the arguments, then the lines of --file. A lone - stands for the lines of "
              "standard input,\nand so does a command line without texts. Many texts go in several "
              "requests and come back in order.\n--json writes a line of JSON for each text.\n\n  "
              "attendant embed --similarity \"A man eats.\" \"Someone has lunch.\" "
              "\"It rains.\"\n  attendant embed --json < texts.txt > embeddings.jsonl\n"
              "  attendant embed --file texts.txt --output embeddings.npy\n",
          .make = []() -> std::unique_ptr<Command> { return std::make_unique<EmbedCommand>(); }};
}

}  // namespace attendant::client
