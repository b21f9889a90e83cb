// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;

const std::string kGolden = "tests/golden/routed/";

// router_config.json as sentence-transformers writes it.
constexpr char kRouter[] = R"({
  "types": {"q": "sentence_transformers.sparse_encoder.modules.SparseStaticEmbedding",
            "d": "sentence_transformers.base.modules.transformer.Transformer",
            "s": "sentence_transformers.sparse_encoder.modules.SpladePooling"},
  "structure": {"query": ["q"], "document": ["d", "s"]},
  "parameters": {"default_route": "document", "allow_empty_key": true, "route_mappings": {}}})";

// A folder with this router, in which `replaced` stands for other words.
absl::StatusOr<ModelFolder> FindRouted(std::pair<const char*, const char*> replaced = {"{", "{"},
                                       const std::string& more_modules = "") {
  const TempDirectory directory;
  WriteFile(
      directory / "modules.json",
      absl::StrCat(R"([{"path": "", "type": "sentence_transformers.Router"})", more_modules, "]"));
  WriteFile(directory / "router_config.json", absl::StrReplaceAll(kRouter, {replaced}));
  return FindModelFolder(directory.path());
}

TEST(ModelFolderTest, WithoutModulesAllIsInOneFolder) {
  const TempDirectory directory;
  const auto folder = FindModelFolder(directory.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->root.path(), directory.path());
  EXPECT_EQ(folder->encoder.path(), directory.path());
  EXPECT_FALSE(folder->splade.has_value());
  EXPECT_FALSE(folder->query.has_value());
}

TEST(ModelFolderTest, TheFirstModuleHasTheEncodersFolder) {
  const TempDirectory directory;
  WriteFile(directory / "modules.json",
            R"([{"path": "0_Transformer", "type": "sentence_transformers.Transformer"},
                {"path": "1_Pooling", "type": "sentence_transformers.Pooling"}])");
  const auto folder = FindModelFolder(directory.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->root.path(), directory.path());
  EXPECT_EQ(folder->encoder.path(), directory / "0_Transformer");
}

TEST(ModelFolderTest, ARouterHasAFolderForEachModule) {
  const auto folder = FindModelFolder(kGolden + "routed");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->root.path(), kGolden + "routed");
  EXPECT_EQ(folder->encoder.path(), kGolden + "routed/document_0_Transformer");
  EXPECT_EQ(folder->splade->path(), kGolden + "routed/document_1_SpladePooling");
  ASSERT_TRUE(folder->query.has_value());
  EXPECT_EQ(folder->query->folder.path(), kGolden + "routed/query_0_SparseStaticEmbedding");
  EXPECT_EQ(folder->query->file, "");
  EXPECT_FALSE(folder->query->is_default);
}

TEST(ModelFolderTest, TheEncoderOfARouterMayLieBesideIt) {
  const auto folder = FindModelFolder(kGolden + "in_root");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->encoder.path(), kGolden + "in_root");
  EXPECT_EQ(folder->splade->path(), kGolden + "in_root/document_1_SpladePooling");
}

TEST(ModelFolderTest, FilesOfTokenWeightsAreFound) {
  EXPECT_EQ(FindModelFolder(kGolden + "idf")->query->file, "idf.json");
  EXPECT_EQ(FindModelFolder(kGolden + "weights_txt")->query->file, "query_token_weights.txt");
}

// A link to itself stands for a disk that does not answer.
TEST(ModelFolderTest, AFileOfTokenWeightsThatCannotBeExaminedIsNotLeftOut) {
  const TempDirectory directory;
  std::filesystem::create_symlink("idf.json", directory / "idf.json");
  EXPECT_THAT(FindModelFolder(directory.path()).status().ToString(),
              HasSubstr("/idf.json: the links lead in a circle"));
}

TEST(ModelFolderTest, TheRouterSaysWhatTextsAreWithoutAPrompt) {
  ASSERT_TRUE(FindRouted().ok()) << FindRouted().status();
  EXPECT_FALSE(FindRouted()->query->is_default);
  EXPECT_TRUE(FindRouted({R"("default_route": "document")", R"("default_route": "query")"})
                  ->query->is_default);
}

TEST(ModelFolderTest, SaysWhatIsNotSupported) {
  const auto expect = [](const absl::StatusOr<ModelFolder>& folder, absl::StatusCode code,
                         const char* message) {
    EXPECT_EQ(folder.status().code(), code) << message;
    EXPECT_THAT(std::string(folder.status().message()), HasSubstr(message));
  };
  constexpr absl::StatusCode kUnsupported = absl::StatusCode::kUnimplemented;
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  expect(FindRouted({"modules.SparseStaticEmbedding", "modules.StaticEmbedding"}), kUnsupported,
         "StaticEmbedding`, supported is SparseStaticEmbedding");
  expect(FindRouted({"modules.SpladePooling", "modules.Pooling"}), kUnsupported,
         "supported is Transformer, SpladePooling");
  expect(FindRouted({R"(["d", "s"])", R"(["d"])"}), kUnsupported, "a route of 1 modules");
  expect(FindRouted({R"("query": [)", R"("image": [], "query": [)"}), kUnsupported, "`image`");
  expect(FindRouted({R"("default_route": "document")", R"("default_route": "x")"}), kUnsupported,
         "`default_route` is `x`");
  expect(FindRouted({R"("route_mappings": {)", R"("route_mappings": {"text": "query")"}),
         kUnsupported, "`route_mappings`");
  expect(FindRouted({"{", "{"}, R"(, {"path": "", "type": "sentence_transformers.Normalize"})"),
         kUnsupported, "behind a Router none is supported");
  expect(FindRouted({R"("s")", R"("../s")"}), kInvalid, "leaves the checkpoint's folder");
  expect(FindRouted({R"(["q"])", R"(["p"])"}), kInvalid, "`p`");
  expect(FindRouted({R"(["q"])", R"([1])"}), kInvalid, "string");
  expect(FindRouted({R"("structure")", R"("other")"}), kInvalid, "`structure`");
}

TEST(ModelFolderTest, ARouterWithoutItsFileAndAColbertModelInAFolderAreRefused) {
  const TempDirectory directory;
  WriteFile(directory / "modules.json",
            R"([{"path": "", "type": "sentence_transformers.Router"}])");
  EXPECT_TRUE(absl::IsNotFound(FindModelFolder(directory.path()).status()));
  WriteFile(directory / "modules.json",
            R"([{"path": "0_T", "type": "sentence_transformers.Transformer"},
                {"path": "1_Dense", "type": "sentence_transformers.Dense"}])");
  EXPECT_TRUE(absl::IsUnimplemented(FindModelFolder(directory.path()).status()));
  WriteFile(directory / "modules.json",
            R"([{"path": "../x", "type": "sentence_transformers.Transformer"}])");
  EXPECT_TRUE(absl::IsInvalidArgument(FindModelFolder(directory.path()).status()));
}

}  // namespace
}  // namespace attendant
