// SPDX-License-Identifier: Apache-2.0
#include "server/text/chat_template/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace attendant {
namespace {

using testing::HasSubstr;

constexpr int kQuery = 0, kDocument = 1;

// A query and a document that are not known.
std::vector<ChatMessage> Pair() {
  return {{.role = "query", .content = {{.unknown = kQuery}}},
          {.role = "document", .content = {{.unknown = kDocument}}}};
}

absl::StatusOr<ChatText> Render(absl::string_view source,
                                const std::vector<ChatMessage>& messages = Pair()) {
  const absl::StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(source);
  if (!parsed.ok()) return parsed.status();
  size_t work = 0;
  return parsed->Render(messages, {}, work);
}

std::string Repeat(absl::string_view text, int times) {
  std::string repeated;
  for (int i = 0; i < times; ++i) absl::StrAppend(&repeated, text);
  return repeated;
}

TEST(ChatTemplateTest, MakesWhatTransformersMakes) {
  std::ifstream file("tests/golden/chat/templates.json");
  const auto golden = nlohmann::json::parse(file);
  std::map<std::string, ChatVariable> variables = {{"tools", std::monostate()}};
  for (const auto& [name, value] : golden["variables"].items()) {
    if (value.is_boolean()) variables[name] = value.get<bool>();
    if (value.is_number()) variables[name] = value.get<int64_t>();
    if (value.is_string()) variables[name] = value.get<std::string>();
  }
  for (const nlohmann::json& one : golden["cases"]) {
    const auto source = one["template"].get<std::string>();
    std::vector<ChatMessage> messages;
    std::vector<std::string> unknown;
    for (const nlohmann::json& message : one["messages"]) {
      const auto role = message["role"].get<std::string>();
      const auto content = message["content"].get<std::string>();
      ChatPart part{.fixed = content};
      if (role != "system") {
        part = {.unknown = static_cast<int>(unknown.size())};
        unknown.push_back(content);
      }
      messages.push_back({.role = role, .content = {part}});
    }
    size_t work = 0;
    const absl::StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(source);
    ASSERT_TRUE(parsed.ok()) << source << parsed.status();
    const absl::StatusOr<ChatText> rendered = parsed->Render(messages, variables, work);
    ASSERT_TRUE(rendered.ok()) << source << rendered.status();
    std::string text;
    for (const ChatPart& part : *rendered) {
      text += part.unknown < 0 ? part.fixed : unknown[static_cast<size_t>(part.unknown)];
    }
    EXPECT_EQ(text, one["rendered"].get<std::string>()) << source;
  }
}

TEST(ChatTemplateTest, UnknownTextsMayStandAnywhere) {
  const auto rendered = Render(
      "a{{ messages[1].content }}{{ messages[0].content ~ messages[1].content + 'b' }}{{ 'c' }}");
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  EXPECT_EQ(*rendered, (ChatText{{.fixed = "a"},
                                 {.unknown = kDocument},
                                 {.unknown = kQuery},
                                 {.unknown = kDocument},
                                 {.fixed = "bc"}}));
  EXPECT_EQ(*Render(""), ChatText());
}

TEST(ChatTemplateTest, NothingMayDependOnThem) {
  for (const char* source :
       {"{{ messages[0].content | trim }}", "{% if messages[0].content %}a{% endif %}",
        "{{ messages[0].content == 'a' }}", "{{ messages | selectattr('content') | first }}",
        "{{ messages[0].content | default('a', true) }}", "{{ messages[messages[0].content] }}",
        "{{ raise_exception(messages[0].content) }}"}) {
    const absl::Status status = Render(source).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << source << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("line 1: the template depends on what"));
  }
}

TEST(ChatTemplateTest, RefusesWhatItDoesNotKnow) {
  const std::pair<std::string, const char*> cases[] = {
      {"\n{% macro a() %}{% endmacro %}", "line 2: tag `macro` is not supported; supported: for"},
      {"{% raw %}{% endraw %}", "tag `raw`"},
      {"{% set a.b = 1 %}", "`set` of a block or an attribute"},
      {"{% set a %}b{% endset %}", "`set` of a block or an attribute"},
      {"{% for m in messages if m %}{% endfor %}", "`for` with `if` or `recursive`"},
      {"{% for m in 'ab' %}{% endfor %}", "`for` over a value that is no list"},
      {"{{ messages | tojson }}", "filter `tojson` is not supported; supported: default"},
      {"{{ messages | map('upper') }}", "filter `map` with these arguments"},
      {"{{ messages | selectattr('role', 'in', 'a') }}", "filter `selectattr` with these"},
      {"{{ messages | first(1) }}", "filter `first` with these arguments"},
      {"{{ 'a' | list }}", "filter `list` of a value that is no list"},
      {"{{ 'a' is odd }}", "test `odd` is not supported; supported: defined"},
      {"{{ messages[0].content.strip() }}", "method `strip` is not supported"},
      {"{{ strftime_now('%d') }}", "function `strftime_now` is not supported"},
      {"{{ messages[1:] }}", "a slice is not supported"},
      {"{{ messages }}", "a list as a text is not supported"},
      {"{{ 1 if messages | selectattr('role', 'eq', 'system') }}",
       "the truth of a filtered list without `| list`"},
      {"{{ messages | rejectattr('role') | length }}", "the length of a filtered list"},
      {"{{ messages | map(attribute='role') | last }}", "the last of a filtered list"},
      {"{{ (messages | map(attribute='role'))[0] }}", "an item of a filtered list"},
      {"{% set a = messages | map(attribute='role') %}", "`set` to a filtered list"},
      {"{{ messages | map(attribute='role') }}", "a filtered list without `| list` as a text"},
      {"{{ messages | map(attribute='role') == 1 }}", "comparing a filtered list"},
      {"{{ messages | map(attribute='role') | default('a', true) }}", "the truth of a filtered"},
      {"{% set a = 2147483647 %}" + Repeat("{% set a = a + a %}", 33), "a number beyond 64 bits"},
      {"{{ messages[0] == 1 }}", "comparing a message"},
      {"{{ 'a' < 'b' }}", "the order of values that are no numbers"},
      {"{{ loop_ * 2 }}", "`*` is not supported"},
      {"{{ [1, 2] }}", "`[` is not supported here"},
      {"{{ '\\x41' }}", "escape `\\\\x` is not supported"},
      {"{{ 'a' in 'abc' }}", "`in` is not supported here"},
      {"{{ 'a' not in 'abc' }}", "`not` is not supported here"},
      {"{{ 3 - 1 }}", "`-` is not supported here"},
      {"{{ 1 == 1 == 2 }}", "`==` is not supported here"},
      {"{{ 1, 2 }}", "`,` is not supported here"},
      {"{{ 4 is divisibleby 2 }}", "a test with an argument"},
      {"{{ 4 is divisibleby(2) }}", "a test with an argument"},
      {"{{ 0.5 }}", "`5` is not supported here"},
      {"{% for a, b in messages %}{% endfor %}", "`,` is not supported here"},
      {"{% for (a, b) in messages %}{% endfor %}", "`(` is not supported here"},
      {"{% for a in messages %}{% else %}{% endfor %}", "`for` with `else`"},
      {"{{ 99999999999 }}", "number `99999999999` is not supported"},
      {"{% for m in messages %}{{ loop.cycle }}{% endfor %}", "`loop.cycle` is not supported"}};
  for (const auto& [source, message] : cases) {
    const absl::Status status = Render(source).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << source << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << source;
    EXPECT_THAT(std::string(status.message()), HasSubstr("line ")) << source;
  }
}

TEST(ChatTemplateTest, RefusesWhatIsNotValid) {
  const std::pair<std::string, const char*> cases[] = {
      {"{{ 'a'", "line 1: a tag has no end"},
      {"{% if 1", "a tag has no end"},
      {"a\n{# a", "line 2: a comment has no end"},
      {"{{ 'a }}", "a text between quotes has no end"},
      {"{{ 'a\\", "escape"},
      {"{{", "a tag has no end"},
      {"{% if 1 %}a", "`if` has no `endif`"},
      {"{% if 1 %}a{% else %}b", "`if` has no `endif`"},
      {"{% if 1 %}a{% endfor %}", "`endfor` ends no block"},
      {"{% for m in messages %}a", "`for` has no `endfor`"},
      {"{% else %}", "`else` ends no block"},
      {"{{ messages | first.role }}", "`}}` is expected, not `.`"},
      {"{{ messages | first[0] }}", "`}}` is expected, not `[`"},
      {"{{ 1 is a is a }}", "a test of a test"},
      {"{% endif %}", "`endif` ends no block"},
      {"{{ }}", "a value is expected, not `}}`"},
      {"{{ 'a' b }}", "`}}` is expected, not `b`"},
      {"{{ (1 }}", "`)` is expected"},
      {"{{ messages | }}", "a name is expected"},
      {"{{ missing.role }}", "attribute `role` of an undefined value"},
      {"{{ raise_exception('no system') }}", "the template refuses the messages: `no system`"},
      {"a\xFF", "invalid UTF-8 at byte 1"}};
  for (const auto& [source, message] : cases) {
    const absl::Status status = Render(source).status();
    EXPECT_FALSE(status.ok()) << source;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << source;
  }
}

// Each would take much memory, time or stack without its limit.
TEST(ChatTemplateTest, IsBounded) {
  const std::string deep = "blocks and expressions are more than 48 deep";
  const std::string loop = "{% for a in messages %}";
  const std::string work = "the template makes more than 16777216 bytes of values";
  const std::string parts =
      "{% set a = messages[0].content ~ 'x' %}" + Repeat("{% set a = a ~ a %}", 4);
  const std::string text = "{% set a = 'aaaaaaaa' %}" + Repeat("{% set a = a ~ a %}", 11);
  const std::pair<std::string, std::string> cases[] = {
      {std::string(kMaxTemplateBytes + 1, 'a'), "the template has 131073 bytes, the limit is"},
      {"{{ " + Repeat("(", 50'000) + "1 }}", deep},
      {"{{ " + Repeat("not ", 30'000) + "1 }}", deep},
      {"{{ 1" + Repeat(" ~ 1", 30'000) + " }}", deep},
      {"{{ a" + Repeat(".a", 30'000) + " }}", deep},
      {"{{ a" + Repeat("|d", 30'000) + " }}", deep},
      {"{{ a" + Repeat("[a", 30'000) + " }}", deep},
      {"{{ a" + Repeat(" if a else a", 9'000) + " }}", deep},
      {"{{ a" + Repeat(" is a | d", 9'000) + " }}", deep},
      {Repeat("{% if 1 %}", 10'000), deep},
      {Repeat(loop, 5'000), deep},
      {Repeat(loop, 20) + Repeat("{% endfor %}", 20), "the template takes more than 20000 steps"},
      {Repeat("{{ 1 }}", 18'000), "the template takes more than 20000 steps"},
      {"{% set a = 'aaaaaaaa' %}" + Repeat("{% set a = a ~ a %}", 40), "longer than 32768 bytes"},
      {parts + "{{ messages | first(a" + Repeat(",a", 19'800) + ") }}", work},
      {text + "{{ messages | first(a" + Repeat(",a", 19'800) + ") }}", work},
      {text + Repeat("{% set b = a %}", 7'500), work},
      {"{% set a = messages[0].content %}" + Repeat("{% set a = a ~ a %}", 40),
       "longer than 32768 bytes"},
      {std::string(kMaxRenderedBytes + 1, 'a'), "longer than 32768 bytes"}};
  for (const auto& [source, message] : cases) {
    const absl::Status status = Render(source).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << source.substr(0, 50) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << source.substr(0, 50);
  }
  EXPECT_TRUE(Render(Repeat("{% if 1 %}", 20) + Repeat("{% endif %}", 20)).ok());
  EXPECT_TRUE(Render(std::string(kMaxRenderedBytes, 'a')).ok());
}

TEST(ChatTemplateTest, RunsShareTheirWork) {
  const auto parsed = ChatTemplate::Parse("{% set a = 1 %}");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  size_t work = 0;
  ASSERT_TRUE(parsed->Render(Pair(), {{"b", std::string(1000, 'b')}}, work).ok());
  EXPECT_GT(work, 1000u);
  work = kMaxTemplateWork;
  EXPECT_TRUE(absl::IsInvalidArgument(parsed->Render(Pair(), {}, work).status()));
}

}  // namespace
}  // namespace attendant
