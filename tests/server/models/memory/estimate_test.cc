// SPDX-License-Identifier: Apache-2.0
#include "server/models/memory/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "kernels/backends/backends.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/io/tensor_store.h"
#include "server/metrics/model_metrics.h"
#include "server/metrics/server_metrics.h"
#include "server/models/encoder_model.h"
#include "server/models/model_loader.h"
#include "server/models/sentence/model_folder.h"
#include "server/threads/task_pool.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"
#include "tests/support/failing_listing.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

// Large enough for its weights to be more than noise: 44 MiB of f32.
constexpr EncoderConfig kConfig{.layers = 4,
                                .heads = 6,
                                .hidden = 384,
                                .ffn = 1536,
                                .vocab = 12000,
                                .max_positions = 256,
                                .segment_types = 2,
                                .layer_norm_epsilon = 1e-12f,
                                .activation = Activation::kGeluErf};

absl::StatusOr<MemoryEstimate> Estimate(const std::string& directory,
                                        const EstimateOptions& options) {
  const absl::StatusOr<ModelFolder> folder = FindModelFolder(directory);
  return folder.ok() ? EstimateMemory(*folder, options) : folder.status();
}

// Memory of this process that is not a file's.
int64_t AnonymousBytes() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    int64_t kib = 0;
    if (word == "RssAnon:" && file >> kib) return kib * 1024;
  }
  return -1;
}

ModelOptions MakeOptions(DType dtype, std::vector<ThreadTeam> replicas) {
  ModelOptions options;
  options.dtype = std::string(DTypeName(dtype));
  options.replicas = std::move(replicas);
  options.batcher.max_batch_tokens = 1024;
  options.batcher.max_batch_sequences = 256;
  options.batcher.max_queued_tokens = 1 << 16;
  options.batcher.max_queued_requests = 16;
  return options;
}

class EstimateTest : public testing::TestWithParam<DType> {};

TEST_P(EstimateTest, IsNearWhatTheProcessGrowsBy) {
#ifdef ATTENDANT_SANITIZED
  GTEST_SKIP() << "a sanitizer keeps memory of its own";
#endif
  const auto backend = MakeBackend("cpu", {.load_threads = 2});
  if (!backend.ok() || !(*backend)->Supports(GetParam()).ok()) {
    GTEST_SKIP() << "this processor has no fast kernels for " << DTypeName(GetParam());
  }
  TempDirectory directory;
  WriteCheckpoint(directory.path(), kConfig, 1);
  const ModelOptions options = MakeOptions(GetParam(), {2, 1});
  const auto estimate =
      Estimate(directory.path(), {.dtype = GetParam(),
                                  .limits = {.max_batch_tokens = 1024, .max_batch_sequences = 256},
                                  .replicas = options.replicas});
  ASSERT_TRUE(estimate.ok()) << estimate.status();
  ServerMetrics metrics("test");
  TaskPool completions(1, "completion");
  GiveBackFreedMemory();
  const int64_t before = AnonymousBytes();
  const auto model = LoadModel({.name = "m", .directory = directory.path()}, **backend, options,
                               metrics, completions.executor());
  ASSERT_TRUE(model.ok()) << model.status();
  GiveBackFreedMemory();
  const int64_t grown = AnonymousBytes() - before;
  const ModelLoadInfo info = (*model)->LoadInfo();
  const auto mib = [](int64_t bytes) {
    return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / kMiB);
  };
  SCOPED_TRACE(absl::StrCat("estimate: weights ", mib(estimate->weight_bytes), ", sessions ",
                            mib(estimate->session_bytes), ", loading ", mib(estimate->load_bytes),
                            "; the process grew by ", mib(grown), ", weights ",
                            mib(info.weight_bytes), ", sessions ", mib(info.arena_bytes)));
  EXPECT_GE(estimate->peak(), grown);
  EXPECT_LE(static_cast<double>(estimate->held()), 1.25 * static_cast<double>(grown) + 8 * kMiB);
  EXPECT_GE(estimate->held(), info.weight_bytes + info.arena_bytes);
}

INSTANTIATE_TEST_SUITE_P(Formats, EstimateTest,
                         testing::Values(DType::kF32, DType::kBf16, DType::kInt8),
                         [](const auto& tested) { return std::string(DTypeName(tested.param)); });

TEST(MemoryCheckTest, AModelThatDoesNotFitIsRefusedBeforeItIsRead) {
  TempDirectory directory;
  WriteTinyModel(directory.path());
  const auto backend = MakeBackend("cpu", {.load_threads = 1});
  if (!backend.ok()) GTEST_SKIP() << backend.status();
  ModelOptions options = MakeOptions(DType::kF32, {1});
  const auto memory = std::make_shared<ModelMemory>(1000);
  options.memory = memory;
  ServerMetrics metrics("test");
  TaskPool completions(1, "completion");
  const auto refused = LoadModel({.name = "m", .directory = directory.path()}, **backend, options,
                                 metrics, completions.executor());
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("limit of all together is 1000"));
  EXPECT_EQ(memory->held_bytes(), 0);
  options.memory = std::make_shared<ModelMemory>(64 * kMiB);
  auto model = LoadModel({.name = "m", .directory = directory.path()}, **backend, options, metrics,
                         completions.executor());
  ASSERT_TRUE(model.ok()) << model.status();
  const ModelLoadInfo info = (*model)->LoadInfo();
  EXPECT_EQ(options.memory->held_bytes(), info.weight_bytes + info.arena_bytes);
  model->reset();
  EXPECT_EQ(options.memory->held_bytes(), 0);
}

// Its weights are stored as f32: without an adapter they are read where they are.
TEST(MemoryCheckTest, WeightsAreCopiedForAnAdapterOnly) {
  constexpr int64_t kAdaptedValues = 16320;
  const std::string folder = "tests/golden/adapters/jina_v3";
  EstimateOptions adapted;
  adapted.merges_adapter = true;
  const auto plain = Estimate(folder, {});
  const auto merged = Estimate(folder, adapted);
  ASSERT_TRUE(plain.ok() && merged.ok()) << plain.status() << merged.status();
  EXPECT_EQ(merged->load_bytes - plain->load_bytes, kAdaptedValues * int64_t{sizeof(float)});
  EXPECT_EQ(merged->weight_bytes, plain->weight_bytes);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A small checkpoint of tests/golden/encoder, with parts of its config.json changed: its tables are
// far larger than its weights then.
struct TablesCase {
  std::string model;
  std::vector<std::pair<std::string, std::string>> changes;
  int64_t buckets = 0;  // rows of the embeddings of distances, where they are in the checkpoint
};

void WriteChanged(const TablesCase& changed, const std::string& directory) {
  const std::string from = absl::StrCat("tests/golden/encoder/", changed.model);
  std::string config = ReadFile(from + "/config.json");
  ASSERT_EQ(absl::StrReplaceAll(changed.changes, &config), std::ssize(changed.changes));
  WriteFile(directory + "/config.json", config);
  const auto store = TensorStore::Open(from);
  ASSERT_TRUE(store.ok()) << store.status();
  std::vector<TestTensor> tensors;
  for (const auto& [name, tensor] : (*store)->tensors()) {
    std::vector<int64_t> dims = tensor->dims;
    if (changed.buckets > 0 && name.ends_with("rel_embeddings.weight")) dims[0] = changed.buckets;
    int64_t values = 1;
    for (const int64_t dim : dims) values *= dim;
    tensors.push_back(
        FloatTensor(name, dims, std::vector<float>(static_cast<size_t>(values), 0.1f)));
  }
  WriteFile(directory + "/model.safetensors", SafetensorsBytes(tensors));
}

class TablesTest : public testing::TestWithParam<TablesCase> {};

TEST_P(TablesTest, CountAsTheBackEndMakesThem) {
  const auto backend = MakeBackend("cpu", {.load_threads = 1});
  if (!backend.ok()) GTEST_SKIP() << backend.status();
  TempDirectory directory;
  WriteChanged(GetParam(), directory.path());
  if (HasFatalFailure()) return;
  const auto estimate = Estimate(directory.path(), {});
  ASSERT_TRUE(estimate.ok()) << estimate.status();
  auto checkpoint = LoadCheckpoint(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto encoder =
      (*backend)->Prepare(checkpoint->config, std::move(checkpoint->weights), DType::kF32);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  const auto held = static_cast<double>((*encoder)->info().weight_bytes);
  EXPECT_GE(static_cast<double>(estimate->weight_bytes), 0.95 * held);
  EXPECT_LE(static_cast<double>(estimate->weight_bytes), 1.35 * held)
      << "embeddings of distances count too, though the tables are all that is kept";
}

const std::pair<std::string, std::string> kManyPositions = {"max_position_embeddings\": 40",
                                                            "max_position_embeddings\": 65536"};
const std::pair<std::string, std::string> kManyNomicPositions = {"n_positions\": 40",
                                                                 "n_positions\": 65536"};

INSTANTIATE_TEST_SUITE_P(Families, TablesTest,
                         testing::Values(TablesCase{"tiny_nomic_bert", {kManyPositions}},
                                         TablesCase{"tiny_modernbert", {kManyPositions}},
                                         TablesCase{"tiny_jina_bert", {kManyPositions}},
                                         TablesCase{"tiny_nomic_moe", {kManyNomicPositions}},
                                         TablesCase{
                                             "tiny_deberta_v2",
                                             {kManyPositions, {"buckets\": 8", "buckets\": 2048"}},
                                             4096}),
                         [](const auto& tested) { return tested.param.model; });

// Beside what the same tensors take, of which nothing is known.
TEST(MemoryCheckTest, WeightsInAnotherOrderCountTwice) {
  TempDirectory of_known, of_unknown;
  WriteChanged({"tiny_neobert", {}}, of_known.path());
  WriteChanged({"tiny_neobert", {{"model.NeoBERT\"", "model.Other\""}}}, of_unknown.path());
  const auto known = Estimate(of_known.path(), {});
  const auto unknown = Estimate(of_unknown.path(), {});
  ASSERT_TRUE(known.ok() && unknown.ok()) << known.status() << unknown.status();
  EXPECT_EQ(known->load_bytes - unknown->load_bytes, 2 * 3 * 32 * 32 * 4);
}

struct SessionMemory {
  int64_t estimated = 0, held = 0;
};

// Of tiny_nomic_moe, whose tokens go to so many experts.
SessionMemory MemoryWithExperts(const std::string& experts_per_token) {
  const auto backend = MakeBackend("cpu", {.load_threads = 1});
  if (!backend.ok()) return {};
  TempDirectory directory;
  WriteChanged(
      {"tiny_nomic_moe", {kManyNomicPositions, {"top_k\": 2", "top_k\": " + experts_per_token}}},
      directory.path());
  const SessionLimits limits{.max_batch_tokens = 65536, .max_batch_sequences = 8};
  const ThreadTeam team(1);
  const auto estimate = Estimate(directory.path(), {.limits = limits, .replicas = {&team, 1}});
  auto checkpoint = LoadCheckpoint(directory.path());
  const auto encoder =
      (*backend)->Prepare(checkpoint->config, std::move(checkpoint->weights), DType::kF32);
  return {estimate->session_bytes, (*(*encoder)->NewSession(limits, team))->arena_bytes()};
}

// What experts make of the rows of a section lies beside the other rows.
TEST(MemoryCheckTest, OutputsOfExpertsCount) {
  const SessionMemory one = MemoryWithExperts("1"), four = MemoryWithExperts("4");
  EXPECT_NEAR(static_cast<double>(four.estimated - one.estimated),
              static_cast<double>(four.held - one.held),
              0.02 * static_cast<double>(four.held - one.held));
}

// BERT with the head of a masked language model, whose output matrix is that of the embeddings.
void WriteMaskedLanguageModel(const std::string& directory, const EncoderConfig& config) {
  std::string json = ConfigJson(config);
  json.insert(1, R"("architectures": ["BertForMaskedLM"], )");
  WriteFile(directory + "/config.json", json);
  std::vector<TestTensor> tensors = RandomTensors(config, 1);
  for (TestTensor& tensor : tensors) tensor.name.insert(0, "bert.");
  const auto add = [&](const std::string& name, const std::vector<int64_t>& dims, int64_t values) {
    tensors.push_back(FloatTensor("cls.predictions." + name, dims,
                                  std::vector<float>(static_cast<size_t>(values), 0.1f)));
  };
  add("transform.dense.weight", {config.hidden, config.hidden}, config.hidden * config.hidden);
  for (const char* name :
       {"transform.dense.bias", "transform.LayerNorm.weight", "transform.LayerNorm.bias"}) {
    add(name, {config.hidden}, config.hidden);
  }
  add("bias", {config.vocab}, config.vocab);
  WriteFile(directory + "/model.safetensors", SafetensorsBytes(tensors));
}

void ExpectHeadCounts(const EncoderConfig& config, int threads) {
  const auto backend = MakeBackend("cpu", {.load_threads = 1});
  if (!backend.ok()) GTEST_SKIP() << backend.status();
  TempDirectory directory;
  WriteMaskedLanguageModel(directory.path(), config);
  const ModelOptions options = MakeOptions(DType::kF32, {threads});
  const auto estimate =
      Estimate(directory.path(), {.limits = {.max_batch_tokens = 1024, .max_batch_sequences = 256},
                                  .replicas = options.replicas});
  ASSERT_TRUE(estimate.ok()) << estimate.status();
  ServerMetrics metrics("test");
  TaskPool completions(1, "completion");
  const auto model = LoadModel({.name = "m", .directory = directory.path()}, **backend, options,
                               metrics, completions.executor());
  ASSERT_TRUE(model.ok()) << model.status();
  const ModelLoadInfo info = (*model)->LoadInfo();
  const auto held = static_cast<double>(info.weight_bytes);
  EXPECT_NEAR(static_cast<double>(estimate->weight_bytes), held, 0.1 * held);
  EXPECT_GE(estimate->session_bytes, info.arena_bytes);
}

TEST(MemoryCheckTest, TheHeadOfAMaskedLanguageModelCounts) {
  EncoderConfig config = kConfig;
  config.layers = 1;
  ExpectHeadCounts(config, 1);
  config.hidden = config.ffn = 48;
  config.vocab = 300'000;  // each thread has room for all of it
  ExpectHeadCounts(config, 4);
}

// Writes a file of so many bytes. The estimate asks for its size only.
void WriteBytes(const std::string& path, size_t bytes) { WriteFile(path, std::string(bytes, ' ')); }

TEST(MemoryCheckTest, TokenizersCountByTheirFiles) {
  TempDirectory directory;
  WriteCheckpoint(directory.path(), kTinyConfig, 1);
  const auto load_bytes = [&directory] {
    const auto estimate = Estimate(directory.path(), {});
    EXPECT_TRUE(estimate.ok()) << estimate.status();
    return estimate.ok() ? estimate->load_bytes : 0;
  };
  constexpr int64_t kFileBytes = 1000;
  const int64_t without = load_bytes();
  WriteBytes(directory / "sentencepiece.bpe.model", kFileBytes);
  const int64_t sentencepiece = load_bytes() - without;
  WriteBytes(directory / "tokenizer.json", kFileBytes);
  const int64_t tokenizer = load_bytes() - without;
  EXPECT_EQ(tokenizer, 12 * kFileBytes);
  EXPECT_EQ(sentencepiece, 3 * tokenizer) << "it becomes a tokenizer.json first";
}

TEST(MemoryCheckTest, AVocabularyCountsWhereItIsTheTokenizer) {
  TempDirectory directory;
  WriteCheckpoint(directory.path(), kTinyConfig, 1);
  const auto without = Estimate(directory.path(), {});
  WriteBytes(directory / "vocab.txt", 1000);
  const auto of_bert = Estimate(directory.path(), {});
  WriteFile(directory / "tokenizer_config.json", R"({"tokenizer_class": "EsmTokenizer"})");
  const auto of_esm = Estimate(directory.path(), {});
  ASSERT_TRUE(without.ok() && of_bert.ok() && of_esm.ok()) << of_esm.status();
  EXPECT_EQ(of_bert->load_bytes, without->load_bytes);
  EXPECT_EQ(of_esm->load_bytes - without->load_bytes, 250 * 1000);
}

TEST(MemoryCheckTest, ModulesCountByTheirFiles) {
  TempDirectory directory;
  WriteCheckpoint(directory.path(), kTinyConfig, 1);
  const auto without = Estimate(directory.path(), {});
  std::filesystem::create_directory(directory / "2_Dense");
  WriteBytes(directory / "2_Dense/model.safetensors", 1000);
  const auto with = Estimate(directory.path(), {});
  ASSERT_TRUE(without.ok() && with.ok()) << without.status() << with.status();
  EXPECT_EQ(with->weight_bytes - without->weight_bytes, 1000);
}

TEST(MemoryCheckTest, TheTokenizerOfQueriesCounts) {
  const std::string folder = "tests/golden/routed/routed";
  const auto both = Estimate(folder, {});
  const auto found = FindModelFolder(folder);
  ASSERT_TRUE(both.ok() && found.ok()) << both.status() << found.status();
  ASSERT_TRUE(found->query.has_value());
  const auto documents = Estimate(found->encoder.path(), {});
  ASSERT_TRUE(documents.ok()) << documents.status();
  const auto bytes = std::filesystem::file_size(found->query->folder.path() + "/tokenizer.json");
  EXPECT_EQ(both->load_bytes - documents->load_bytes, 12 * static_cast<int64_t>(bytes));
}

TEST(MemoryCheckTest, ACheckpointThatCannotBeReadHasNoEstimate) {
  TempDirectory directory;
  EXPECT_TRUE(absl::IsNotFound(Estimate(directory.path(), {}).status()));
}

TEST(EstimateTest, AFolderThatCannotBeListedToItsEndStillHasOne) {
  const TempDirectory directory;
  WriteTinyModel(directory / "tiny");
  const absl::StatusOr<MemoryEstimate> whole = Estimate(directory / "tiny", {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const int entries : {0, 1}) {
    const FailingListing broken(directory / "tiny", entries);
    const absl::StatusOr<MemoryEstimate> estimate = Estimate(directory / "tiny", {});
    ASSERT_TRUE(estimate.ok()) << estimate.status();
    EXPECT_EQ(estimate->weight_bytes, whole->weight_bytes);
  }
}

}  // namespace
}  // namespace attendant
