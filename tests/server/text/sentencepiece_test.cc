// SPDX-License-Identifier: Apache-2.0
// Folders with a sentencepiece model and no tokenizer.json, against transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/text/sentencepiece/convert.h"
#include "server/text/sentencepiece/model_proto.h"
#include "server/text/tokenizer.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kFolders = "tests/golden/tokenizer/sentencepiece/";

json ReadJson(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class SentencePieceTest : public testing::TestWithParam<const char*> {};

TEST_P(SentencePieceTest, IdsAreThoseOfTransformers) {
  const auto tokenizer = LoadTokenizer(kFolders + GetParam());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const json texts = ReadJson("tests/golden/tokenizer/families/texts.json");
  const json ids = ReadJson(kFolders + "ids.json")[GetParam()];
  ASSERT_EQ(texts.size(), ids.size());
  ASSERT_GE(texts.size(), 200u);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i].get<std::string>();
    const auto tokens = (*tokenizer)->Tokenize(text, {.max_tokens = 1 << 20});
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(tokens->token_ids, ids[i].get<std::vector<int32_t>>()) << text;
  }
}

TEST_P(SentencePieceTest, PairsAreThoseOfTransformers) {
  const auto tokenizer = LoadTokenizer(kFolders + GetParam());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const json pairs = ReadJson(kFolders + "pairs.json")[GetParam()];
  ASSERT_GE(pairs.size(), 10u);
  for (const json& pair : pairs) {
    const auto tokens = (*tokenizer)
                            ->TokenizePair(pair[0].get<std::string>(), pair[1].get<std::string>(),
                                           {.max_tokens = 1 << 20});
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(tokens->token_ids, pair[2].get<std::vector<int32_t>>()) << pair[0];
    EXPECT_EQ(tokens->segment_ids, pair[3].get<std::vector<int32_t>>()) << pair[0];
  }
}

INSTANTIATE_TEST_SUITE_P(Families, SentencePieceTest,
                         testing::Values("albert", "albert_cased", "xlm_roberta", "camembert", "t5",
                                         "deberta_v2"));

// A message of protobuf.
std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}
std::string Number(uint64_t field, uint64_t value) { return Varint(field << 3) + Varint(value); }
std::string Bytes(uint64_t field, const std::string& bytes) {
  return Varint(field << 3 | 2) + Varint(bytes.size()) + bytes;
}
std::string Float(uint64_t field, float value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return Varint(field << 3 | 5) + bytes;
}
std::string PieceOf(const std::string& text, float score, uint64_t type) {
  return Bytes(1, Bytes(1, text) + Float(2, score) + Number(3, type));
}

TEST(SentencePieceModelTest, ReadsWhatDecidesIds) {
  const auto model = ParseSentencePiece(PieceOf("<unk>", 0, 2) + PieceOf("a", -1.5f, 1) +
                                        Bytes(2, Number(3, 2) + Number(24, 1) + Number(35, 1)) +
                                        Bytes(3, Bytes(2, "map") + Number(3, 0) + Number(5, 0)) +
                                        Number(99, 1) + Float(98, 1));
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->pieces.size(), 2u);
  EXPECT_EQ(model->pieces[0].type, SentencePieceModel::PieceType::kUnknown);
  EXPECT_EQ(model->pieces[1].text, "a");
  EXPECT_EQ(model->pieces[1].score, -1.5f);
  EXPECT_EQ(model->model_type, 2u);
  EXPECT_TRUE(model->treat_whitespace_as_suffix && model->byte_fallback);
  EXPECT_FALSE(model->add_dummy_prefix || model->escape_whitespaces);
  EXPECT_EQ(model->precompiled_charsmap, "map");
}

TEST(SentencePieceModelTest, RefusesWhatIsNoModel) {
  const std::string piece = PieceOf("a", 0, 1);
  const std::pair<std::string, const char*> cases[] = {
      {"", "its list of pieces"},
      {"hello", "the file"},
      {piece.substr(0, piece.size() - 1), "the file"},
      {Varint(1 << 3 | 2) + Varint(uint64_t{1} << 63) + "x", "the file"},
      {Varint(1 << 3 | 2) + std::string(10, '\xff'), "the file"},
      {std::string(1, '\0') + piece, "the file"},
      {Varint(1 << 3 | 3) + piece, "the file"},
      {Bytes(1, "\x0a"), "piece 0"},
      {piece + PieceOf("", 0, 1), "piece 1"},
      {PieceOf("\xff", 0, 1), "piece 0"},
      {PieceOf("a", std::numeric_limits<float>::infinity(), 1), "piece 0"},
      {PieceOf("a", 0, 7), "type 7"},
      {piece + Bytes(2, "\x18"), "trainer_spec"},
      {piece + Bytes(3, "\x12\x05g"), "normalizer_spec"}};
  for (const auto& [bytes, message] : cases) {
    const absl::Status status = ParseSentencePiece(bytes).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << message << " " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(SentencePieceModelTest, EveryCutOfAFileEndsInAStatus) {
  const std::string bytes = ReadBytes(kFolders + "t5/spiece.model");
  ASSERT_GT(bytes.size(), 1000u);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto model = ParseSentencePiece(bytes.substr(0, size));
    EXPECT_TRUE(model.ok() || absl::IsInvalidArgument(model.status())) << size;
  }
}

// A folder with the tokenizer of XLM-R whose files are these.
absl::Status Load(const std::vector<std::pair<std::string, std::string>>& files) {
  const TempDirectory directory;
  for (const auto& [name, contents] : files) WriteFile(directory / name, contents);
  return LoadTokenizer(directory.path()).status();
}

TEST(ConvertSentencePieceTest, SaysWhatIsNotSupported) {
  constexpr char kFile[] = "sentencepiece.bpe.model";
  const std::string model = ReadBytes(kFolders + "xlm_roberta/" + kFile);
  const std::string pieces = PieceOf("<unk>", 0, 2) + PieceOf("<s>", 0, 3) + PieceOf("</s>", 0, 3);
  const auto config = [](const std::string& fields) {
    return std::pair<std::string, std::string>(
        "tokenizer_config.json", absl::StrCat(R"({"tokenizer_class": "XLMRobertaTokenizer")",
                                              fields.empty() ? "" : ", ", fields, "}"));
  };
  EXPECT_TRUE(Load({{kFile, model}, config("")}).ok());
  EXPECT_TRUE(Load({{kFile, model}, {"config.json", R"({"model_type": "xlm-roberta"})"}}).ok());
  EXPECT_TRUE(Load({{kFile, model},
                    {"tokenizer_config.json", R"({"tokenizer_class": "XLMRobertaTokenizerFast"})"}})
                  .ok());
  EXPECT_TRUE(
      Load({{kFile, model}, config(R"("mask_token": {"content": "<mask>", "lstrip": true})")})
          .ok());
  constexpr absl::StatusCode kUnsupported = absl::StatusCode::kUnimplemented;
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  const std::tuple<std::vector<std::pair<std::string, std::string>>, absl::StatusCode, const char*>
      cases[] = {
          {{{kFile, model}}, kUnsupported, "tokenizer_class `` and model_type ``"},
          {{{kFile, model}, {"config.json", R"({"model_type": "xlnet"})"}},
           kUnsupported,
           "`xlnet`"},
          {{{kFile, pieces + Bytes(2, Number(3, 2))}, config("")},
           kUnsupported,
           "model_type 2 (BPE)"},
          {{{kFile, pieces + Bytes(2, Number(35, 1))}, config("")}, kUnsupported, "byte_fallback"},
          {{{kFile, pieces + Bytes(2, Number(24, 1))}, config("")},
           kUnsupported,
           "treat_whitespace_as_suffix"},
          {{{kFile, pieces + Bytes(3, Number(3, 0))}, config("")},
           kUnsupported,
           "add_dummy_prefix"},
          {{{kFile, pieces + Bytes(3, Number(5, 0))}, config("")},
           kUnsupported,
           "escape_whitespaces"},
          {{{kFile, PieceOf("<s>", 0, 3)}, config("")}, kInvalid, "piece 0 is `<s>`"},
          {{{kFile, pieces.substr(0, pieces.size() - 3)}, config("")}, kInvalid, "cut off"},
          {{{kFile, pieces + Bytes(3, Bytes(2, "no map"))}, config("")},
           kInvalid,
           "precompiled_charsmap"},
          {{{kFile, model}, config(R"("cls_token": "[CLS]")")}, kUnsupported, "`cls_token`"},
          {{{kFile, model}, config(R"("added_tokens_decoder": {"5": {"content": "new"}})")},
           kInvalid,
           "`new` has the id 5"},
          {{{kFile, model}, config(R"("added_tokens_decoder": {"x": {"content": "new"}})")},
           kInvalid,
           "`x` is no id"},
          {{{kFile, model}, config(R"("added_tokens_decoder": {"5": {"content": "<pad>"}})")},
           kInvalid,
           "has the id 5, the conversion gives it 1"},
          {{{kFile, model}, config(""), {"added_tokens.json", R"({"<mask>": 3})"}},
           kInvalid,
           "has the id 3"},
          {{{kFile, model}, {"tokenizer_config.json", "["}}, kInvalid, "tokenizer_config.json"}};
  for (const auto& [files, code, message] : cases) {
    const absl::Status status = Load(files);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(ConvertSentencePieceTest, TokensWithoutAPlaceAreRefused) {
  constexpr char kFile[] = "sentencepiece.bpe.model";
  const std::string model = ReadBytes(kFolders + "xlm_roberta/" + kFile);
  const auto refused = [&](const std::string& file, const std::string& fields,
                           const std::string& message) {
    const bool config = file == "tokenizer_config.json";
    const std::string name = R"("tokenizer_class": "XLMRobertaTokenizer")";
    const absl::Status status =
        Load({{kFile, model},
              {"tokenizer_config.json",
               absl::StrCat("{", name, config ? "," : "", config ? fields : "", "}")},
              {"special_tokens_map.json", config ? "{}" : absl::StrCat("{", fields, "}")}});
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  constexpr char kConfig[] = "tokenizer_config.json", kMap[] = "special_tokens_map.json";
  refused(kConfig, R"("image_token": "[X]")", "`image_token`");
  refused(kConfig, R"("extra_special_tokens": {"x": "y"})", "an object");
  refused(kConfig, R"("additional_special_tokens": [{"content": "y"}])", "`__type`");
  refused(kConfig, R"("extra_special_tokens": [""])", "is empty");
  refused(kMap, R"("cls_token": "x")", "`cls_token`");
  refused(kMap, R"("image_token": "x")", "`image_token`");
}

// Ids as transformers 5.23 gives them.
struct BesideCase {
  using Ids = std::vector<int32_t>;
  const char* family;
  const char* file;
  const char* config;
  const char* map;  // special_tokens_map.json
  Ids ids;
  const char* text = "a [X] b <y> c";
};
constexpr char kXlm[] = R"({"tokenizer_class": "XLMRobertaTokenizer", )";
constexpr char kT5[] = R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 7, )";
const BesideCase::Ids kXlmPlain = {0, 14, 5, 85, 3, 86, 115, 5, 101, 67, 82, 112, 2};
const BesideCase::Ids kT5Plain = {12, 3, 83, 2, 84, 113, 3, 99, 65, 80, 110, 1};
constexpr char kXlmFile[] = "sentencepiece.bpe.model", kT5File[] = "spiece.model";
const BesideCase kBeside[] = {
    {"xlm_roberta",
     kXlmFile,
     R"("additional_special_tokens": ["[X]", "<y>"]})",
     "{}",
     {0, 14, 123, 115, 124, 112, 2}},
    {"xlm_roberta",
     kXlmFile,
     R"("additional_special_tokens": ["[X]"], "extra_special_tokens": ["<y>"]})",
     "{}",
     {0, 14, 5, 85, 3, 86, 115, 123, 112, 2}},
    {"xlm_roberta",
     kXlmFile,
     R"("additional_special_tokens": ["[X]", "<y>"], "extra_special_tokens": []})",
     "{}",
     {0, 14, 123, 115, 124, 112, 2}},
    {"xlm_roberta", kXlmFile, R"("additional_special_tokens": null})", "{}", kXlmPlain},
    {"xlm_roberta", kXlmFile, R"("add_bos_token": false})",
     R"({"additional_special_tokens": ["[X]"], "mask_token": {"content": "<mask>"}})", kXlmPlain},
    {"xlm_roberta",
     kXlmFile,
     R"("extra_special_tokens": ["<y>"]})",
     R"({"extra_special_tokens": ["[X]"]})",
     {0, 14, 124, 115, 123, 112, 2}},
    {"xlm_roberta",
     kXlmFile,
     R"("extra_special_tokens": ["<y>"], "added_tokens_decoder": {}})",
     R"({"extra_special_tokens": ["[X]"]})",
     {0, 14, 5, 85, 3, 86, 115, 123, 112, 2}},
    {"t5",
     kT5File,
     R"("additional_special_tokens": ["[X]", "<y>"]})",
     "{}",
     {12, 127, 113, 128, 110, 1}},
    {"t5",
     kT5File,
     R"("mask_token": "[M]", "cls_token": "<y>", "bos_token": "[X]"})",
     "{}",
     {12, 127, 113, 128, 110, 1}},
    {"t5",
     kT5File,
     R"("additional_special_tokens": ["<y>"]})",
     R"({"bos_token": "[X]"})",
     {12, 127, 113, 128, 110, 1}},
    {"t5", kT5File, R"("sep_token": "</s>"})", "{}", kT5Plain},
    // An object without names is as nothing, a list is not.
    {"t5",
     kT5File,
     R"("extra_special_tokens": {}})",
     R"({"extra_special_tokens": {}})",
     {110, 123, 1},
     "c <extra_id_3>"},
    {"t5", kT5File, R"("extra_special_tokens": []})", "{}", {110, 3, 123, 1}, "c <extra_id_3>"},
    {"xlm_roberta", kXlmFile, R"("extra_special_tokens": {}})", "{}", kXlmPlain},
    // In the order of their ids.
    {"xlm_roberta",
     kXlmFile,
     R"("additional_special_tokens": ["[X]", "<y>"], "added_tokens_decoder":
          {"124": {"content": "[X]", "special": true}, "123": {"content": "<y>", "special": true}}})",
     "{}",
     {0, 14, 124, 115, 123, 112, 2}}};

TEST(ConvertSentencePieceTest, TokensBesideTheModelGetTheNextIds) {
  for (const BesideCase& one : kBeside) {
    const bool t5 = one.file == kT5File;
    const TempDirectory directory;
    WriteFile(directory / one.file, ReadBytes(absl::StrCat(kFolders, one.family, "/", one.file)));
    WriteFile(directory / "tokenizer_config.json", absl::StrCat(t5 ? kT5 : kXlm, one.config));
    WriteFile(directory / "special_tokens_map.json", one.map);
    const auto tokenizer = LoadTokenizer(directory.path());
    ASSERT_TRUE(tokenizer.ok()) << one.config << tokenizer.status();
    const auto tokens = (*tokenizer)->Tokenize(one.text, {.max_tokens = 100});
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(tokens->token_ids, one.ids) << one.config << one.map;
  }
}

// A control piece and a piece that the user defined are found in the text as they are: with spaces.
TEST(ConvertSentencePieceTest, PiecesBesideTheModelStandInTheTextAsTheyAre) {
  const TempDirectory directory;
  WriteFile(directory / "sentencepiece.bpe.model",
            PieceOf("<unk>", 0, 2) + PieceOf("<s>", 0, 3) + PieceOf("</s>", 0, 3) +
                PieceOf("a", -1, 1) + PieceOf("<by user>", 0, 4) + PieceOf("<in control>", 0, 3));
  WriteFile(directory / "config.json", R"({"model_type": "xlm-roberta"})");
  const auto tokenizer = LoadTokenizer(directory.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto tokens = (*tokenizer)->Tokenize("<by user><in control>", {.max_tokens = 100});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  // XLM-R counts its pieces from 1, and its own tokens go around them.
  EXPECT_THAT(tokens->token_ids, testing::ElementsAre(0, 5, 6, 2));
}

TEST(ConvertSentencePieceTest, TokenizerJsonComesFirstAndNeitherIsNotFound) {
  const std::string model = ReadBytes(kFolders + "t5/spiece.model");
  EXPECT_EQ(Load({{"spiece.model", model}, {"tokenizer.json", "{"}}).code(),
            absl::StatusCode::kInvalidArgument);
  const absl::Status missing = Load({{"config.json", R"({"model_type": "t5"})"}});
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace attendant
