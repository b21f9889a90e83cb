// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/commands/encode_flags.h"
#include "client/cli/commands/similarity.h"
#include "client/cli/files/npy.h"
#include "client/cli/format.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr size_t kShownValues = 4;
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
                              {"last", Pooling::kLast},
                              {"mean_sqrt_len", Pooling::kMeanSqrtLen},
                              {"weighted_mean", Pooling::kWeightedMean}},
                             "How token states become one vector; model is the model's own way");
    flags.Add("dims", &pooled_.dims, "N", "Keep the first N dimensions; 0 keeps all");
    flags.AddChoice<EmbeddingFormat>("embedding_format", &pooled_.format,
                                     {{"numbers", EmbeddingFormat::kNumbers},
                                      {"int8", EmbeddingFormat::kInt8},
                                      {"binary", EmbeddingFormat::kBinary},
                                      {"ubinary", EmbeddingFormat::kUbinary}},
                                     "Numbers of --dtype, or quantized: int8 with a scale, or a "
                                     "bit for each dimension, eight to "
                                     "a signed or an unsigned byte");
    flags.AddSwitch("normalize", &normalize_,
                    "Scale embeddings to length 1; without either flag, the model decides");
    flags.AddSwitch("no-normalize", &no_normalize_, "Do not scale embeddings");
    flags.AddNumber("chunk_tokens", &pooled_.chunk_tokens, "N", {0},
                    "Late chunking: cut each text into chunks of at most N tokens, each embedded "
                    "in the light of the whole text; 0: do not");
    flags.AddSwitch("similarity", &similarity_, "Show how similar the texts are, not the values");
    flags.Add("top", &top_, "N", "Most pairs that --similarity lists");
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    if (normalize_ && no_normalize_) {
      return UsageError("--normalize and --no-normalize exclude each other", io);
    }
    if (similarity_ && IsPackedBits()) {
      return UsageError("--similarity compares values, not bits: see --embedding_format", io);
    }
    if (!flags_.output.empty() && pooled_.format != EmbeddingFormat::kNumbers) {
      return UsageError("--output writes floats without scales: see --embedding_format, --json",
                        io);
    }
    if (normalize_ || no_normalize_) pooled_.normalize = normalize_;
    return RunWithClient(common_, io, [&](Client& client) { return Embed(client, arguments, io); });
  }

 private:
  bool keeps_all() const { return similarity_ || !flags_.output.empty(); }

  bool IsPackedBits() const {
    return pooled_.format == EmbeddingFormat::kBinary ||
           pooled_.format == EmbeddingFormat::kUbinary;
  }

  absl::Status Embed(Client& client, std::span<const std::string> arguments, Io& io) {
    ATTENDANT_ASSIGN_OR_RETURN(EncodeRequest prototype, flags_.Prototype(client));
    prototype.pooled = pooled_;
    prototype.token_strings = pooled_.chunk_tokens > 0;
    ATTENDANT_RETURN_IF_ERROR(
        flags_.SendTexts(client, std::move(prototype), arguments, io,
                         [&](const EncodeRequest& request, const EncodeResult& result) {
                           return Take(request, result, io);
                         }));
    return Finish(io);
  }

  absl::Status Take(const EncodeRequest& request, const EncodeResult& result, Io& io) {
    const Tensor& rows = result.pooled;
    if (rows.shape.empty()) return absl::InternalError("the answer has no embeddings");
    size_t row = 0;
    for (size_t i = 0; i < request.sequences.size(); ++i, ++num_texts_) {
      const std::string& text = std::get<std::string>(request.sequences[i]);
      const SequenceInfo& info = result.sequences[i];
      for (size_t span = 0; span < std::max<size_t>(info.spans.size(), 1); ++span, ++row) {
        const Place place{.text = text, .info = info, .span = span, .row = row};
        if (!keeps_all()) Write(place, result, io);
        if (similarity_) texts_.push_back(ShownText(place));
      }
    }
    if (similarity_ && texts_.size() > kMaxSimilarityTexts) {
      return absl::FailedPreconditionError(
          absl::StrCat("--similarity compares at most ", kMaxSimilarityTexts, " texts"));
    }
    if (keeps_all()) {
      ATTENDANT_RETURN_IF_ERROR(AppendRows("pooled", rows, embeddings_));
    }
    return io.out ? absl::OkStatus() : absl::FailedPreconditionError("cannot write the output");
  }

  // An embedding of an answer, and what it is of.
  struct Place {
    const std::string& text;
    const SequenceInfo& info;
    size_t span;  // of info.spans; of a text without spans: 0
    size_t row;   // of the answer

    bool is_chunk() const { return !info.spans.empty(); }
    std::vector<std::string> Tokens() const {  // of a chunk
      const TokenSpan& part = info.spans[span];
      if (info.token_strings.empty()) return {};
      return {info.token_strings.begin() + part.begin, info.token_strings.begin() + part.end};
    }
  };

  static std::string ShownText(const Place& place) {
    return place.is_chunk() ? absl::StrJoin(place.Tokens(), " ") : place.text;
  }

  void Write(const Place& place, const EncodeResult& result, Io& io) const {
    if (common_.json) return WriteJson(place, result, io);
    const std::span<const float> embedding = Row(result.pooled, place.row);
    const TokenSpan span = place.is_chunk() ? place.info.spans[place.span] : TokenSpan{};
    const int64_t tokens = place.is_chunk() ? span.end - span.begin : place.info.tokens;
    io.out << absl::StreamFormat("%s %d values, %d tokens%s  %s\n",
                                 FirstValues(embedding, kShownValues), embedding.size(), tokens,
                                 CutNote(place.info), OneLine(ShownText(place), kShownTextWidth));
  }

  void WriteJson(const Place& place, const EncodeResult& result, Io& io) const {
    FloatJson json{{"index", num_texts_}, {"model", result.model}};
    if (place.is_chunk()) {
      const TokenSpan& span = place.info.spans[place.span];
      json["chunk"] = place.span;
      json["begin"] = span.begin;
      json["end"] = span.end;
      json["token_strings"] = place.Tokens();
    } else {
      json["text"] = place.text;
    }
    json["tokens"] = place.info.tokens;
    json["truncated"] = place.info.truncated;
    json["tokens_seen"] = place.info.tokens_seen;
    const std::span<const float> embedding = Row(result.pooled, place.row);
    if (pooled_.format == EmbeddingFormat::kNumbers) {
      json["embedding"] = embedding;
    } else {
      json["embedding"] = std::vector<int64_t>(embedding.begin(), embedding.end());
    }
    const std::vector<float>& scales = result.pooled_scales.values;
    if (!scales.empty()) json["scale"] = scales[place.row];
    io.out << Dump(json) << "\n";
  }

  absl::Status Finish(Io& io) const {
    if (similarity_ && common_.json) {
      FloatJson matrix = FloatJson::array();
      const Tensor cosines = CosineMatrix(embeddings_);
      for (size_t i = 0; i < texts_.size(); ++i) matrix.push_back(Row(cosines, i));
      io.out << Dump(FloatJson{{"texts", texts_}, {"cosines", matrix}}) << "\n";
    } else if (similarity_) {
      io.out << DescribeSimilarity(texts_, embeddings_, top_);
    }
    if (flags_.output.empty()) return absl::OkStatus();
    return WriteNpy(flags_.output, embeddings_.shape, embeddings_.values);
  }

  CommonFlags common_;
  EncodeFlags flags_;
  PooledOptions pooled_;
  bool normalize_ = false;
  bool no_normalize_ = false;
  bool similarity_ = false;
  size_t top_ = 5;

  int64_t num_texts_ = 0;
  // A row for each text, or for each of its chunks.
  std::vector<std::string> texts_;  // with --similarity: [rows]
  Tensor embeddings_;               // with --similarity or --output: [rows, dims]
};

}  // namespace

CommandInfo EmbedCommandInfo() {
  return {.name = "embed",
          .summary = "Turns texts into embeddings",
          .arguments = "[TEXT ...]",
          .details =
              "Texts are the arguments, then the lines of --file. A lone - stands for the lines of "
              "standard input,\nand so does a command line without texts. Many texts go in several "
              "requests and come back in order.\n--json writes a line of JSON for each text, or "
              "for each chunk with --chunk_tokens.\n\n  "
              "attendant embed --similarity \"A man eats.\" \"Someone has lunch.\" "
              "\"It rains.\"\n  attendant embed --json < texts.txt > embeddings.jsonl\n"
              "  attendant embed --file texts.txt --output embeddings.npy\n"
              "  attendant embed --json --chunk_tokens 128 < documents.txt > chunks.jsonl\n",
          .make = []() -> std::unique_ptr<Command> { return std::make_unique<EmbedCommand>(); }};
}

}  // namespace attendant::client
