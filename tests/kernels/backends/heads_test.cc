// SPDX-License-Identifier: Apache-2.0
// Heads on tokens, on every instruction set of this machine: against transformers' numbers
// (tests/golden/tokens), and the same bits in every batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "kernels/backends/backends.h"
#include "kernels/backends/heads.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/core/packed_batch.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/io/json_file.h"
#include "tests/support/backends.h"
#include "tests/support/parity.h"

namespace attendant {
namespace {

using testing::SizeIs;

constexpr double kTolerance = 2e-5;

struct Expected {
  std::vector<int32_t> ids;
  std::map<std::string, std::vector<float>> values;             // "sparse", "dense"
  std::map<std::string, std::vector<std::vector<float>>> rows;  // "logits", "vectors", "weights"
  std::vector<int32_t> masks;
};

std::vector<JsonNode> Elements(const JsonNode& array) {
  auto elements = array.Elements();
  EXPECT_TRUE(elements.ok()) << elements.status();
  return *std::move(elements);
}

std::vector<float> Floats(const JsonNode& array) {
  std::vector<float> values;
  for (const JsonNode& node : Elements(array)) {
    double value = 0;
    EXPECT_TRUE(node.Get(value).ok());
    values.push_back(static_cast<float>(value));
  }
  return values;
}

std::vector<int32_t> Integers(const JsonNode& array) {
  const std::vector<float> values = Floats(array);
  return {values.begin(), values.end()};
}

std::vector<Expected> ReadExpected(const std::string& folder) {
  const auto json = ReadJsonFile(folder + "/expected.json");
  EXPECT_TRUE(json.ok()) << json.status();
  std::vector<Expected> cases;
  for (const JsonNode& node : Elements(*json)) {
    Expected expected{.ids = Integers(*node.Field("ids")), .values = {}, .rows = {}, .masks = {}};
    if (node.Has("masks")) expected.masks = Integers(*node.Field("masks"));
    if (node.Has("sparse")) expected.values["sparse"] = Floats(*node.Field("sparse"));
    for (const char* name : {"logits", "vectors", "weights"}) {
      if (!node.Has(name)) continue;
      for (const JsonNode& row : Elements(*node.Field(name))) {
        expected.rows[name].push_back(Floats(row));
      }
    }
    cases.push_back(std::move(expected));
  }
  return cases;
}

std::vector<TestSequence> Sequences(const std::vector<Expected>& cases) {
  std::vector<TestSequence> sequences;
  for (const Expected& expected : cases) {
    TestSequence sequence{.token_ids = expected.ids,
                          .positions = {},
                          .segment_ids = std::vector<int32_t>(expected.ids.size())};
    for (size_t i = 0; i < expected.ids.size(); ++i) {
      sequence.positions.push_back(static_cast<int32_t>(i));
    }
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

// A golden model with its heads.
class Model {
 public:
  Model(const NamedBackend& named, const std::string& name, const TokenHeadOptions& options,
        DType dtype)
      : folder_("tests/golden/tokens/" + name) {
    auto checkpoint = LoadCheckpoint(folder_);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    std::vector<TokenHead> heads = std::move(checkpoint->token_heads);
    auto encoder = named.backend->Prepare(checkpoint->config, checkpoint->weights, dtype);
    EXPECT_TRUE(encoder.ok()) << encoder.status();
    encoder_ = *std::move(encoder);
    for (TokenHead& head : heads) {
      const bool skip_first = head.options.skip_first;
      head.options = options;
      head.options.skip_first = skip_first;
      auto made = MakeHead(head, *encoder_);
      EXPECT_TRUE(made.ok()) << made.status();
      heads_.push_back(*std::move(made));
    }
  }

  const std::string& folder() const { return folder_; }

  // The results of one batch with `options`.
  std::vector<HeadResult> Run(const std::vector<TestSequence>& sequences,
                              const TaskOptions& options, int threads = 2) const {
    const SessionLimits limits{.max_batch_tokens = 512, .max_batch_sequences = 16};
    auto session = encoder_->NewSession(limits, threads);
    EXPECT_TRUE(session.ok()) << session.status();
    const auto outputs = RunBatch(**session, sequences);
    const auto head = std::find_if(heads_.begin(), heads_.end(), [&](const auto& candidate) {
      return candidate->Makes(options.kind);
    });
    EXPECT_NE(head, heads_.end());
    auto runner = (*head)->NewRunner(limits, threads);
    EXPECT_TRUE(runner.ok()) << runner.status();
    std::vector<HeadResult> results(sequences.size());
    std::vector<HeadInput> inputs;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto len = static_cast<int64_t>(sequences[i].token_ids.size());
      inputs.push_back(
          {.options = &options,
           .token_ids = sequences[i].token_ids,
           .states = {outputs[i].last_hidden_state.data(), {len, encoder_->config().hidden}},
           .result = &results[i]});
    }
    ThreadPool pool(threads);
    EXPECT_TRUE((*runner)->Run(inputs, pool).ok());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_LE(results[i].values.size(),
                (*head)->MaxResult(options, sequences[i].token_ids).values);
    }
    return results;
  }

 private:
  std::string folder_;
  std::unique_ptr<PreparedEncoder> encoder_;
  std::vector<std::unique_ptr<Head>> heads_;
};

// What is compared: a model's output on a back end, in f32.
struct Compared {
  std::string backend, model, output;
};

void ExpectNear(const Compared& compared, const std::vector<float>& found,
                const std::vector<float>& expected) {
  ASSERT_THAT(found, SizeIs(expected.size()));
  double square = 0;
  for (const float value : expected) square += double{value} * double{value};
  if (square == 0) {
    EXPECT_EQ(found, expected);
    return;
  }
  const double difference = LargestDifference(found, expected) / std::sqrt(square);
  EXPECT_LE(difference, kTolerance) << compared.output;
  RecordParity({compared.model, compared.output, "f32", compared.backend, kRelative, difference,
                kTolerance});
}

std::vector<NamedBackend> Processors() {
  std::vector<NamedBackend> found;
  for (NamedBackend& named : AvailableBackends()) {
    if (!absl::StartsWith(named.name, "cuda")) found.push_back(std::move(named));
  }
  return found;
}

std::vector<float> Dense(const HeadResult& result, size_t vocab) {
  std::vector<float> dense(vocab);
  for (size_t i = 0; i < result.indices.size(); ++i) {
    EXPECT_GT(result.values[i], 0);
    if (i > 0) {
      EXPECT_LT(result.indices[i - 1], result.indices[i]);
    }
    dense[static_cast<size_t>(result.indices[i])] = result.values[i];
  }
  return dense;
}

struct MaskedLmModel {
  const char* name;
  int32_t mask_id;
  SpladeOptions splade{};
};

constexpr MaskedLmModel kMaskedLms[] = {
    {"bert_splade", 4},          {"bert_splade_sum", 4, {.sum = true, .twice = true}},
    {"albert_masked_lm", 4},     {"electra_masked_lm", 4},
    {"distilbert_splade", 4},    {"roberta_masked_lm", 4},
    {"mpnet_masked_lm", 4},      {"modernbert_masked_lm", 4},
    {"nomic_bert_masked_lm", 4}, {"gte_masked_lm", 4},
    {"esm_masked_lm", 32},
};

TokenHeadOptions OptionsOf(const MaskedLmModel& model) {
  return {.splade = model.splade, .mask_id = model.mask_id};
}

TEST(HeadsTest, SparseVectorsAreThoseOfSentenceTransformers) {
  for (const NamedBackend& named : Processors()) {
    for (const MaskedLmModel& masked_lm : kMaskedLms) {
      SCOPED_TRACE(named.name + " " + masked_lm.name);
      const Model model(named, masked_lm.name, OptionsOf(masked_lm), DType::kF32);
      std::vector<Expected> cases = ReadExpected(model.folder());
      const auto results = model.Run(Sequences(cases), {.kind = TaskKind::kSparse});
      for (size_t i = 0; i < cases.size(); ++i) {
        const std::vector<float>& expected = cases[i].values["sparse"];
        ExpectNear({named.name, masked_lm.name, "sparse weights"},
                   Dense(results[i], expected.size()), expected);
      }
    }
  }
}

TEST(HeadsTest, LogitsAtMasksAreThoseOfTransformers) {
  for (const NamedBackend& named : Processors()) {
    for (const MaskedLmModel& masked_lm : kMaskedLms) {
      SCOPED_TRACE(named.name + " " + masked_lm.name);
      const Model model(named, masked_lm.name, OptionsOf(masked_lm), DType::kF32);
      std::vector<Expected> cases = ReadExpected(model.folder());
      const auto results =
          model.Run(Sequences(cases), {.kind = TaskKind::kFillMask, .top_k = 1 << 20, .raw = true});
      size_t masks = 0;
      for (size_t i = 0; i < cases.size(); ++i) {
        EXPECT_EQ(results[i].tokens, cases[i].masks);
        const auto& rows = cases[i].rows["logits"];
        for (size_t mask = 0; mask < rows.size(); ++mask, ++masks) {
          const size_t vocab = rows[mask].size();
          std::vector<float> logits(vocab);
          for (size_t j = mask * vocab; j < (mask + 1) * vocab; ++j) {
            logits[static_cast<size_t>(results[i].indices[j])] = results[i].values[j];
            if (j % vocab == 0) continue;
            EXPECT_GE(results[i].values[j - 1], results[i].values[j]);
          }
          ExpectNear({named.name, masked_lm.name, "logits at masks"}, logits, rows[mask]);
        }
      }
      EXPECT_GT(masks, 3u);
    }
  }
}

TEST(HeadsTest, FillMaskGivesProbabilitiesOfTheLikeliest) {
  const Model model(Processors().back(), "bert_splade", OptionsOf(kMaskedLms[0]), DType::kF32);
  const std::vector<TestSequence> sequences = Sequences(ReadExpected(model.folder()));
  const auto all = model.Run(sequences, {.kind = TaskKind::kFillMask, .top_k = 1 << 20})[1];
  EXPECT_NEAR(std::accumulate(all.values.begin(), all.values.end(), 0.0), 1, 1e-5);
  for (const int64_t top : {0, 1, 7}) {
    const auto some = model.Run(sequences, {.kind = TaskKind::kFillMask, .top_k = top})[1];
    const size_t count = top == 0 ? 5 : static_cast<size_t>(top);
    ASSERT_THAT(some.values, SizeIs(count));
    EXPECT_TRUE(std::equal(some.values.begin(), some.values.end(), all.values.begin()));
    EXPECT_TRUE(std::equal(some.indices.begin(), some.indices.end(), all.indices.begin()));
  }
}

TEST(HeadsTest, TopKKeepsTheLargestWeights) {
  const Model model(Processors().back(), "bert_splade", OptionsOf(kMaskedLms[0]), DType::kF32);
  const std::vector<TestSequence> sequences = Sequences(ReadExpected(model.folder()));
  const auto all = model.Run(sequences, {.kind = TaskKind::kSparse})[1];
  const auto some = model.Run(sequences, {.kind = TaskKind::kSparse, .top_k = 6})[1];
  std::vector<float> sorted = all.values;
  std::sort(sorted.rbegin(), sorted.rend());
  ASSERT_THAT(some.values, SizeIs(6));
  EXPECT_EQ(*std::min_element(some.values.begin(), some.values.end()), sorted[5]);
  EXPECT_TRUE(std::is_sorted(some.indices.begin(), some.indices.end()));
}

TEST(HeadsTest, TokenScoresAreThoseOfTransformers) {
  for (const NamedBackend& named : Processors()) {
    for (const char* name :
         {"bert_tokens", "distilbert_tokens", "modernbert_tokens", "nomic_bert_tokens",
          "gte_tokens", "deberta_v2_tokens", "electra_tokens", "albert_tokens", "esm_tokens"}) {
      SCOPED_TRACE(named.name + " " + name);
      const Model model(named, name, {}, DType::kF32);
      std::vector<Expected> cases = ReadExpected(model.folder());
      const auto raw = model.Run(Sequences(cases), {.kind = TaskKind::kTokenScores, .raw = true});
      const auto scores = model.Run(Sequences(cases), {.kind = TaskKind::kTokenScores});
      for (size_t i = 0; i < cases.size(); ++i) {
        std::vector<float> logits, softmax;
        for (const std::vector<float>& row : cases[i].rows["logits"]) {
          double sum = 0;
          for (const float value : row) sum += std::exp(value);
          for (const float value : row)
            softmax.push_back(static_cast<float>(std::exp(value) / sum));
          logits.insert(logits.end(), row.begin(), row.end());
        }
        ExpectNear({named.name, name, "logits of tokens"}, raw[i].values, logits);
        ExpectNear({named.name, name, "scores of tokens"}, scores[i].values, softmax);
      }
    }
  }
}

TEST(HeadsTest, VectorsAndWeightsAreThoseOfBgeM3) {
  for (const NamedBackend& named : Processors()) {
    SCOPED_TRACE(named.name);
    const Model model(named, "bge_m3", {.ignored_ids = {0, 1, 2, 3}}, DType::kF32);
    std::vector<Expected> cases = ReadExpected(model.folder());
    const auto vectors = model.Run(Sequences(cases), {.kind = TaskKind::kMultiVector});
    const auto weights = model.Run(Sequences(cases), {.kind = TaskKind::kSparse});
    size_t weighed = 0;
    for (size_t i = 0; i < cases.size(); ++i) {
      std::vector<float> expected, expected_weights;
      for (const auto& row : cases[i].rows["vectors"]) {
        expected.insert(expected.end(), row.begin(), row.end());
      }
      ExpectNear({named.name, "bge_m3", "vectors of tokens"}, vectors[i].values, expected);
      EXPECT_THAT(vectors[i].tokens, SizeIs(cases[i].ids.size() - 1));
      EXPECT_EQ(vectors[i].tokens.front(), 1);
      std::vector<int32_t> ids;
      for (const auto& entry : cases[i].rows["weights"]) {
        ids.push_back(static_cast<int32_t>(entry[0]));
        expected_weights.push_back(entry[1]);
      }
      EXPECT_EQ(weights[i].indices, ids);
      ExpectNear({named.name, "bge_m3", "sparse weights"}, weights[i].values, expected_weights);
      weighed += ids.size();
    }
    EXPECT_GT(weighed, 5u);
  }
}

TEST(HeadsTest, DocumentsHaveNoVectorsForIgnoredIds) {
  const Model model(Processors().back(), "bge_m3", {.ignored_ids = {2, 100}}, DType::kF32);
  const std::vector<TestSequence> sequences = Sequences(ReadExpected(model.folder()));
  const auto all = model.Run(sequences, {.kind = TaskKind::kMultiVector});
  const auto kept = model.Run(sequences, {.kind = TaskKind::kMultiVector, .document = true});
  for (size_t i = 0; i < sequences.size(); ++i) {
    const auto width = static_cast<int64_t>(all[i].values.size() / all[i].tokens.size());
    std::vector<int32_t> tokens;
    std::vector<float> values;
    auto row = all[i].values.begin();
    for (const int32_t token : all[i].tokens) {
      const int32_t id = sequences[i].token_ids[static_cast<size_t>(token)];
      if (id != 2 && id != 100) {
        tokens.push_back(token);
        values.insert(values.end(), row, row + width);
      }
      row += width;
    }
    EXPECT_EQ(kept[i].tokens, tokens);
    EXPECT_EQ(kept[i].values, values);
    EXPECT_LT(tokens.size(), all[i].tokens.size());
  }
}

// Alone on one thread, and in a batch with others on three.
void ExpectInvariant(const Model& model, const TaskOptions& options) {
  std::vector<TestSequence> sequences = Sequences(ReadExpected(model.folder()));
  const auto together = model.Run(sequences, options, 3);
  for (size_t i = 0; i < sequences.size(); ++i) {
    const HeadResult alone = model.Run({sequences[i]}, options, 1)[0];
    EXPECT_EQ(alone.indices, together[i].indices);
    EXPECT_EQ(alone.values, together[i].values);
    EXPECT_EQ(alone.tokens, together[i].tokens);
  }
}

TEST(HeadsTest, ResultsHaveTheSameBitsInEveryBatch) {
  for (const NamedBackend& named : Processors()) {
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
      if (!named.backend->Supports(dtype).ok()) continue;
      SCOPED_TRACE(named.name + " " + std::string(DTypeName(dtype)));
      for (const MaskedLmModel& masked_lm : {kMaskedLms[0], kMaskedLms[1], kMaskedLms[6]}) {
        const Model model(named, masked_lm.name, OptionsOf(masked_lm), dtype);
        ExpectInvariant(model, {.kind = TaskKind::kSparse, .top_k = 40});
        ExpectInvariant(model, {.kind = TaskKind::kFillMask});
      }
      ExpectInvariant(Model(named, "bert_tokens", {}, dtype), {.kind = TaskKind::kTokenScores});
      const Model m3(named, "bge_m3", {.ignored_ids = {0, 1, 2, 3}}, dtype);
      ExpectInvariant(m3, {.kind = TaskKind::kSparse});
      ExpectInvariant(m3, {.kind = TaskKind::kMultiVector});
    }
  }
}

}  // namespace
}  // namespace attendant
