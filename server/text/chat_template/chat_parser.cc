// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/text/chat_template/chat_node.h"
#include "server/text/chat_template/chat_template.h"
#include "server/text/chat_template/chat_token_reader.h"
#include "server/text/chat_template/chat_tokens.h"
#include "server/text/unicode/check_utf8.h"

namespace attendant::chat {
namespace {

using NodePtr = std::shared_ptr<const Node>;
using Parsed = absl::StatusOr<NodePtr>;

class Parser : private TokenReader {
 public:
  explicit Parser(std::vector<Token> tokens) : TokenReader(std::move(tokens)) {}

  Parsed Run() { return ParseBlock({}); }

 private:
  static Parsed Make(Node node) {
    for (const NodePtr& child : node.children) node.depth = std::max(node.depth, child->depth + 1);
    if (node.depth > kMaxTemplateDepth) return TooDeep(node.line);
    return std::make_shared<const Node>(std::move(node));
  }
  static absl::Status TooDeep(int line) {
    return Invalid(line, absl::StrCat("blocks and expressions are more than ", kMaxTemplateDepth,
                                      " deep in each other, the limit"));
  }

  // Counts what is open while a part is parsed.
  template <typename Parse>
  Parsed Deeper(Parse parse) {
    if (++open_ > kMaxTemplateDepth) return TooDeep(Now().line);
    Parsed parsed = parse();
    --open_;
    return parsed;
  }

  // Up to a tag that begins with one of `ends`, which stays; without any, to the end.
  Parsed ParseBlock(std::initializer_list<absl::string_view> ends) {
    return Deeper([&]() -> Parsed {
      Node block{.kind = NodeKind::kBlock, .line = Now().line};
      while (Now().kind != TokenKind::kEnd && !AtEndOf(ends)) {
        ATTENDANT_ASSIGN_OR_RETURN(NodePtr part, ParsePart());
        block.children.push_back(std::move(part));
      }
      return Make(std::move(block));
    });
  }

  // The block of a tag, and the beginning of that of `ends` which follows.
  Parsed ParseInside(absl::string_view tag, int line,
                     std::initializer_list<absl::string_view> ends) {
    ATTENDANT_ASSIGN_OR_RETURN(NodePtr block, ParseBlock(ends));
    if (Take().kind != TokenKind::kEnd) return block;
    return Invalid(line, absl::StrCat("`", tag, "` has no `end", tag, "`"));
  }

  bool AtEndOf(std::initializer_list<absl::string_view> ends) const {
    return Now().kind == TokenKind::kTagBegin && Ahead().kind == TokenKind::kName &&
           std::find(ends.begin(), ends.end(), Ahead().text) != ends.end();
  }

  Parsed ParsePart() {
    const int line = Now().line;
    if (Now().kind == TokenKind::kText) {
      return Make({.kind = NodeKind::kText, .line = line, .text = Take().text});
    }
    if (Take().kind == TokenKind::kPrintBegin) {
      ATTENDANT_ASSIGN_OR_RETURN(NodePtr value, ParseExpression());
      ATTENDANT_RETURN_IF_ERROR(Expect(TokenKind::kPrintEnd, "}}"));
      return Make({.kind = NodeKind::kPrint, .line = line, .children = {std::move(value)}});
    }
    if (TakeWord("set")) return ParseSet(line);
    if (TakeWord("if")) return ParseIf(line);
    if (TakeWord("for")) return ParseFor(line);
    for (const absl::string_view end : {"elif", "else", "endif", "endfor"}) {
      if (!Is(TokenKind::kName, end)) continue;
      return Invalid(line, absl::StrCat(Quoted(end), " ends no block"));
    }
    return Unknown(line, absl::StrCat("tag ", Quoted(Now().text),
                                      " is not supported; supported: for, if, set"));
  }

  Parsed ParseSet(int line) {
    ATTENDANT_ASSIGN_OR_RETURN(std::string name, TakeName());
    if (!TakeOperator("="))
      return Unknown(line, "`set` of a block or an attribute is not supported");
    ATTENDANT_ASSIGN_OR_RETURN(NodePtr value, ParseExpression());
    ATTENDANT_RETURN_IF_ERROR(ExpectTagEnd());
    return Make({.kind = NodeKind::kSet,
                 .line = line,
                 .text = std::move(name),
                 .children = {std::move(value)}});
  }

  Parsed ParseIf(int line) {
    Node node{.kind = NodeKind::kIf, .line = line};
    do {
      ATTENDANT_ASSIGN_OR_RETURN(NodePtr condition, ParseExpression());
      ATTENDANT_RETURN_IF_ERROR(ExpectTagEnd());
      ATTENDANT_ASSIGN_OR_RETURN(NodePtr block, ParseInside("if", line, {"elif", "else", "endif"}));
      node.children.push_back(std::move(condition));
      node.children.push_back(std::move(block));
    } while (TakeWord("elif"));
    if (TakeWord("else")) {
      ATTENDANT_RETURN_IF_ERROR(ExpectTagEnd());
      ATTENDANT_ASSIGN_OR_RETURN(NodePtr block, ParseInside("if", line, {"endif"}));
      node.children.push_back(std::move(block));
    }
    ATTENDANT_RETURN_IF_ERROR(Expect(TokenKind::kName, "endif"));
    ATTENDANT_RETURN_IF_ERROR(ExpectTagEnd());
    return Make(std::move(node));
  }

  Parsed ParseFor(int line) {
    ATTENDANT_ASSIGN_OR_RETURN(std::string name, TakeName());
    ATTENDANT_RETURN_IF_ERROR(Expect(TokenKind::kName, "in"));
    ATTENDANT_ASSIGN_OR_RETURN(NodePtr list, ParseOr());
    if (!Is(TokenKind::kTagEnd, "%}")) {
      return Unknown(line, "`for` with `if` or `recursive` is not supported");
    }
    Take();
    ATTENDANT_ASSIGN_OR_RETURN(NodePtr block, ParseInside("for", line, {"endfor", "else"}));
    if (Take().text == "else") return Unknown(line, "`for` with `else` is not supported");
    ATTENDANT_RETURN_IF_ERROR(ExpectTagEnd());
    return Make({.kind = NodeKind::kFor,
                 .line = line,
                 .text = std::move(name),
                 .children = {std::move(list), std::move(block)}});
  }

  Parsed ParseExpression() {
    return Deeper([&]() -> Parsed {
      ATTENDANT_ASSIGN_OR_RETURN(NodePtr value, ParseOr());
      while (Is(TokenKind::kName, "if")) {
        const int line = Take().line;
        Node choice{.kind = NodeKind::kChoice, .line = line};
        ATTENDANT_ASSIGN_OR_RETURN(NodePtr condition, ParseOr());
        choice.children = {std::move(condition), std::move(value)};
        if (TakeWord("else")) {
          ATTENDANT_ASSIGN_OR_RETURN(NodePtr other, ParseExpression());
          choice.children.push_back(std::move(other));
        }
        ATTENDANT_ASSIGN_OR_RETURN(value, Make(std::move(choice)));
      }
      return value;
    });
  }

  // Two operands or more, joined by what `join` says: the kind of the node and the operator's text,
  // which it takes; kBlock: there is no such operator.
  struct Joint {
    NodeKind kind = NodeKind::kBlock;
    std::string text{};
  };
  template <typename Operand, typename Join>
  Parsed ParseJoined(Operand operand, Join join) {
    ATTENDANT_ASSIGN_OR_RETURN(NodePtr left, operand());
    while (true) {
      const int line = Now().line;
      Joint joint = join();
      if (joint.kind == NodeKind::kBlock) return left;
      ATTENDANT_ASSIGN_OR_RETURN(NodePtr right, operand());
      ATTENDANT_ASSIGN_OR_RETURN(left, Make({.kind = joint.kind,
                                             .line = line,
                                             .text = std::move(joint.text),
                                             .children = {std::move(left), std::move(right)}}));
    }
  }

  Parsed ParseOr() {
    return ParseJoined([&] { return ParseAnd(); },
                       [&] { return TakeWord("or") ? Joint{NodeKind::kOr} : Joint{}; });
  }

  Parsed ParseAnd() {
    return ParseJoined([&] { return ParseNot(); },
                       [&] { return TakeWord("and") ? Joint{NodeKind::kAnd} : Joint{}; });
  }

  Parsed ParseNot() {
    if (!Is(TokenKind::kName, "not")) return ParseComparison();
    const int line = Take().line;
    ATTENDANT_ASSIGN_OR_RETURN(NodePtr value, Deeper([&] { return ParseNot(); }));
    return Make({.kind = NodeKind::kNot, .line = line, .children = {std::move(value)}});
  }

  Parsed ParseComparison() {
    bool compared = false;
    return ParseJoined([&] { return ParseSum(); },
                       [&] {
                         if (compared) return Joint{};
                         for (const absl::string_view known : {"==", "!=", "<=", ">=", "<", ">"}) {
                           if (!TakeOperator(known)) continue;
                           compared = true;
                           return Joint{NodeKind::kCompare, std::string(known)};
                         }
                         return Joint{};
                       });
  }

  Parsed ParseSum() {
    return ParseJoined([&] { return ParseConcat(); },
                       [&] { return TakeOperator("+") ? Joint{NodeKind::kAdd} : Joint{}; });
  }

  Parsed ParseConcat() {
    return ParseJoined([&] { return ParseFiltered(); },
                       [&] { return TakeOperator("~") ? Joint{NodeKind::kConcat} : Joint{}; });
  }

  // Filters and tests of a value with its attributes and items.
  Parsed ParseFiltered() {
    ATTENDANT_ASSIGN_OR_RETURN(NodePtr value, ParseValue());
    while (true) {
      const int line = Now().line;
      if (TakeOperator("|")) {
        ATTENDANT_ASSIGN_OR_RETURN(value, ParseFilter(std::move(value), line));
      } else if (TakeWord("is")) {
        ATTENDANT_ASSIGN_OR_RETURN(value, ParseTest(std::move(value), line));
      } else {
        return value;
      }
    }
  }

  Parsed ParseValue() {
    ATTENDANT_ASSIGN_OR_RETURN(NodePtr value, ParsePrimary());
    while (true) {
      const int line = Now().line;
      if (TakeOperator(".")) {
        if (Now().kind == TokenKind::kInteger) return NotHere();
        ATTENDANT_ASSIGN_OR_RETURN(std::string name, TakeName());
        if (Is(TokenKind::kOperator, "(")) {
          return Unknown(line, absl::StrCat("method ", Quoted(name), " is not supported"));
        }
        ATTENDANT_ASSIGN_OR_RETURN(value, Make({.kind = NodeKind::kAttribute,
                                                .line = line,
                                                .text = std::move(name),
                                                .children = {std::move(value)}}));
      } else if (TakeOperator("[")) {
        ATTENDANT_ASSIGN_OR_RETURN(NodePtr index, ParseExpression());
        if (Is(TokenKind::kOperator, ":")) return Unknown(line, "a slice is not supported");
        ATTENDANT_RETURN_IF_ERROR(Expect(TokenKind::kOperator, "]"));
        ATTENDANT_ASSIGN_OR_RETURN(value, Make({.kind = NodeKind::kItem,
                                                .line = line,
                                                .children = {std::move(value), std::move(index)}}));
      } else {
        return value;
      }
    }
  }

  Parsed ParseFilter(NodePtr value, int line) {
    Node filter{.kind = NodeKind::kFilter, .line = line, .children = {std::move(value)}};
    ATTENDANT_ASSIGN_OR_RETURN(filter.text, TakeName());
    if (TakeOperator("(")) ATTENDANT_RETURN_IF_ERROR(ParseArguments(filter));
    return Make(std::move(filter));
  }

  bool BeginsValue() const {
    const TokenKind kind = Now().kind;
    return kind == TokenKind::kName || kind == TokenKind::kString || kind == TokenKind::kInteger ||
           Is(TokenKind::kOperator, "(") || Is(TokenKind::kOperator, "[");
  }

  Parsed ParseTest(NodePtr value, int line) {
    const bool negated = TakeWord("not");
    Node test{.kind = NodeKind::kTest, .line = line, .children = {std::move(value)}};
    ATTENDANT_ASSIGN_OR_RETURN(test.text, TakeName());
    if (Is(TokenKind::kName, "is")) return Invalid(line, "a test of a test");
    const bool goes_on =
        Is(TokenKind::kName, "else") || Is(TokenKind::kName, "and") || Is(TokenKind::kName, "or");
    if (BeginsValue() && !goes_on) return Unknown(line, "a test with an argument is not supported");
    ATTENDANT_ASSIGN_OR_RETURN(NodePtr made, Make(std::move(test)));
    if (!negated) return made;
    return Make({.kind = NodeKind::kNot, .line = line, .children = {std::move(made)}});
  }

  // Behind the "(", to the ")".
  absl::Status ParseArguments(Node& node) {
    while (!TakeOperator(")")) {
      if (!node.names.empty()) ATTENDANT_RETURN_IF_ERROR(Expect(TokenKind::kOperator, ","));
      std::string name;
      if (Now().kind == TokenKind::kName && Ahead().text == "=" &&
          Ahead().kind == TokenKind::kOperator) {
        name = Take().text;
        Take();
      }
      ATTENDANT_ASSIGN_OR_RETURN(NodePtr value, ParseExpression());
      node.names.push_back(std::move(name));
      node.children.push_back(std::move(value));
    }
    return absl::OkStatus();
  }

  Parsed ParsePrimary() {
    const int line = Now().line;
    if (TakeOperator("(")) {
      ATTENDANT_ASSIGN_OR_RETURN(NodePtr value, ParseExpression());
      ATTENDANT_RETURN_IF_ERROR(Expect(TokenKind::kOperator, ")"));
      return value;
    }
    if (Is(TokenKind::kOperator, "-") && Ahead().kind == TokenKind::kInteger) {
      Take();
      return ParseInteger(-1);
    }
    switch (Now().kind) {
      case TokenKind::kString: {
        Node node{.kind = NodeKind::kString, .line = line};
        while (Now().kind == TokenKind::kString) node.text += Take().text;
        return Make(std::move(node));
      }
      case TokenKind::kInteger:
        return ParseInteger(1);
      case TokenKind::kName: {
        Node node{.kind = NodeKind::kName, .line = line, .text = Take().text};
        if (!TakeOperator("(")) return Make(std::move(node));
        node.kind = NodeKind::kCall;
        ATTENDANT_RETURN_IF_ERROR(ParseArguments(node));
        return Make(std::move(node));
      }
      default:
        return Now().kind == TokenKind::kOperator ? NotHere() : Expected("a value");
    }
  }

  Parsed ParseInteger(int sign) {
    Node node{.kind = NodeKind::kInteger, .line = Now().line};
    int32_t number = 0;
    if (!absl::SimpleAtoi(Now().text, &number)) {
      return Unknown(node.line, absl::StrCat("number ", Quoted(Now().text), " is not supported"));
    }
    Take();
    node.number = sign * int64_t{number};
    return Make(std::move(node));
  }

  int open_ = 0;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Node>> ParseTemplate(absl::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the template has ", source.size(),
                                                   " bytes, the limit is ", kMaxTemplateBytes));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckUtf8(source));
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<Token> tokens, FindTokens(source));
  return Parser(std::move(tokens)).Run();
}

}  // namespace attendant::chat
