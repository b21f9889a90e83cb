// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/served_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/heads/head.h"
#include "server/models/model_name.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> NamesOf(const EncoderFacts& facts) {
  std::vector<std::string> names;
  for (const ServedKind& kind : ServedKinds()) {
    const std::string name = kind.NameOf("m");
    if (CheckServed(name, kind, facts).ok()) names.push_back(name);
  }
  return names;
}

std::string Refusal(const std::string& name, const EncoderFacts& facts) {
  const absl::Status status = CheckServed(name, *SplitServedName(name).second, facts);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  return std::string(status.message());
}

TEST(ServedKinds, NamesSplitAgainAndNoModelHasOne) {
  for (const ServedKind& kind : ServedKinds()) {
    const std::string name = kind.NameOf("a.b");
    EXPECT_EQ(SplitServedName(name), std::pair(absl::string_view("a.b"), &kind)) << name;
    EXPECT_EQ(CheckModelName(name).ok(), kind.suffix.empty()) << name;
  }
  EXPECT_EQ(kReservedEndings.size() + 1, ServedKinds().size()) << "an ending of no kind";
}

TEST(ServedKinds, OddNamesSplit) {
  const auto parts = [](absl::string_view name) {
    const auto [model, kind] = SplitServedName(name);
    return std::pair(std::string(model), std::string(kind->suffix));
  };
  EXPECT_EQ(parts(""), std::pair(std::string(), std::string()));
  EXPECT_EQ(parts(".ids"), std::pair(std::string(), std::string(".ids")));
  EXPECT_EQ(parts("mids"), std::pair(std::string("mids"), std::string()));
  EXPECT_EQ(parts("m.ids.encoder"), std::pair(std::string("m.ids"), std::string(".encoder")));
}

TEST(ServedKinds, AModelHasTheNamesOfWhatItMakes) {
  EncoderFacts facts{.labels = 2};
  facts.task_columns[static_cast<size_t>(TaskKind::kFillMask)] = 5;
  EXPECT_THAT(NamesOf(facts), ElementsAre("m.ids", "m.encoder")) << "it takes no texts";
  facts.takes_text = true;
  EXPECT_THAT(NamesOf(facts), ElementsAre("m", "m.ids", "m.encoder", "m.scores", "m.masks"));
  facts.labels = 0;
  facts.task_columns = {0, std::nullopt, 3, 4};
  EXPECT_THAT(NamesOf(facts),
              ElementsAre("m", "m.ids", "m.encoder", "m.sparse", "m.tokens", "m.multi_vectors"));
}

TEST(ServedKinds, RefusalsSayWhatIsLacking) {
  EXPECT_THAT(Refusal("m", {}), HasSubstr("'m' has no tokenizer: use '.ids' or '.encoder'"));
  EXPECT_THAT(Refusal("m.sparse", {}), HasSubstr("has no tokenizer"));
  EXPECT_THAT(Refusal("m.scores", {.takes_text = true}),
              HasSubstr("no model 'm.scores': the model has no classifier"));
  EXPECT_THAT(Refusal("m.masks", {.takes_text = true}),
              HasSubstr("no model 'm.masks': the model has no head that makes fill_mask"));
}

TEST(ServedKinds, ARequestAsksForTheOneThingThatTheOutputsAreMadeOf) {
  for (const ServedKind& kind : ServedKinds()) {
    EncodeInput input;
    kind.ask(input);
    EXPECT_EQ(input.pooled, kind.suffix.empty() || kind.suffix == ".ids") << kind.suffix;
    EXPECT_EQ(input.last_hidden_state, kind.suffix == ".encoder") << kind.suffix;
    EXPECT_EQ(input.scores, kind.suffix == ".scores") << kind.suffix;
    EXPECT_EQ(input.tasks.size(), kind.sized_by_results ? 1u : 0u) << kind.suffix;
    EXPECT_EQ(kind.outputs({}).size() > 1, kind.sized_by_results) << kind.suffix;
  }
}

TEST(ServedKinds, RowsOfScoresMayBePairsOfTexts) {
  const auto input = [](absl::string_view name) {
    return SplitServedName(name).second->inputs({.max_sequence_tokens = 8}).front();
  };
  EXPECT_EQ(input("m").max_width, 1);
  EXPECT_EQ(input("m.scores").max_width, 2);
  EXPECT_EQ(input("m.tokens").max_width, 1);
  EXPECT_EQ(input("m.ids").max_width, 8);
  EXPECT_THAT(input("m").dims, ElementsAre(1));
  EXPECT_THAT(input("m.scores").dims, ElementsAre(-1)) << "1 or 2";
}

}  // namespace
}  // namespace attendant
