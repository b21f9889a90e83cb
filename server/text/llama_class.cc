// SPDX-License-Identifier: Apache-2.0
#include "server/text/llama_class.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "server/text/base/token_trie.h"
#include "server/text/unicode/readable.h"

namespace attendant {
namespace {

constexpr FamilyRole kRoles[] = {
    {"unk_token", "<unk>"}, {"bos_token", "<s>"}, {"eos_token", "</s>"}};

bool IsByteLevel(const JsonFields& file, absl::string_view part, absl::string_view steps) {
  if (!file.Has(part)) return false;
  const JsonFields fields = file.Object(part);
  const std::string type = fields.String("type");
  if (type != "Sequence") return type == "ByteLevel";
  for (const JsonFields& step : fields.Objects(steps)) {
    if (step.String("type") == "ByteLevel") return true;
  }
  return false;
}

bool SpellsAllBytes(const TokenModel& model) {
  for (int byte = 0; byte < 256; ++byte) {
    if (model.FindToken(absl::StrFormat("<0x%02X>", byte)) == TokenTrie::kNoId) return false;
  }
  return true;
}

}  // namespace

absl::Span<const FamilyRole> LlamaRoles() { return kRoles; }

bool MakesLlama(const JsonFields& file) {
  return !IsByteLevel(file, "pre_tokenizer", "pretokenizers") &&
         !IsByteLevel(file, "decoder", "decoders");
}

std::string PartsOf(const LlamaSettings& settings) {
  const absl::string_view scheme = !settings.add_prefix_space ? "never"
                                   : settings.legacy          ? "always"
                                                              : "first";
  return absl::StrCat(
      R"({"normalizer":null,"pre_tokenizer":{"type":"Metaspace","replacement":")", "\xe2\x96\x81",
      R"(","prepend_scheme":")", scheme,
      R"(","split":false},"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":)",
      R"({"String":")", "\xe2\x96\x81",
      R"("},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"})",
      settings.add_prefix_space ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})" : "",
      "]}}");
}

void CheckLlama(const JsonFields& file, const ModelPart& part) {
  const JsonFields model = file.Object("model");
  const auto refuse = [&](absl::string_view field, absl::string_view found,
                          absl::string_view wanted) {
    model.Fail(field,
               absl::StrCat("is ", found, ", but LlamaTokenizer of transformers takes ", wanted));
  };
  const auto check = [&](absl::string_view field, bool wanted) {
    const bool found = model.Has(field) && model.Bool(field);
    if (found != wanted) refuse(field, found ? "true" : "false", wanted ? "true" : "false");
  };
  for (const absl::string_view field : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const std::string affix = model.Has(field) ? model.String(field) : "";
    if (!affix.empty()) refuse(field, ReadableName(affix), "none");
  }
  check("ignore_merges", false);
  check("byte_fallback", true);
  if (SpellsAllBytes(*part.model) || !model.Has("unk_token")) return;
  refuse("unk_token", ReadableName(model.String("unk_token")), "none");
}

}  // namespace attendant
