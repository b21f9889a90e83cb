// SPDX-License-Identifier: Apache-2.0
#include "server/text/chat_template/chat_template.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/text/chat_template/chat_filters.h"
#include "server/text/chat_template/chat_node.h"
#include "server/text/chat_template/chat_tokens.h"
#include "server/text/chat_template/chat_value.h"

namespace attendant {
namespace chat {
namespace {

using Names = std::map<std::string, Value, std::less<>>;
using Evaluated = absl::StatusOr<Value>;

Value FromVariable(const ChatVariable& variable) {
  if (const auto* flag = std::get_if<bool>(&variable)) return Value::Bool(*flag);
  if (const auto* number = std::get_if<int64_t>(&variable)) return Value::Integer(*number);
  if (const auto* text = std::get_if<std::string>(&variable)) return Value::Text(*text);
  return {.kind = ValueKind::kNone};
}

// One run of a template.
class Run {
 public:
  Run(Names names, size_t& work) : work_(work) { scopes_.push_back(std::move(names)); }

  ChatText Take() { return std::move(out_); }

  absl::Status Execute(const Node& node) {
    ATTENDANT_RETURN_IF_ERROR(CountStep(node));
    switch (node.kind) {
      case NodeKind::kText:
        return AtLine(node, Append(Value::Text(node.text).text, out_));
      case NodeKind::kPrint: {
        ATTENDANT_ASSIGN_OR_RETURN(const Value value, Evaluate(*node.children[0]));
        const absl::StatusOr<ChatText> text = ToText(value);
        return AtLine(node, text.ok() ? Append(*text, out_) : text.status());
      }
      case NodeKind::kSet: {
        ATTENDANT_ASSIGN_OR_RETURN(Value value, Evaluate(*node.children[0]));
        ATTENDANT_RETURN_IF_ERROR(AtLine(node, CheckNotLazy(value, "`set` to")));
        scopes_.back()[node.text] = std::move(value);
        return absl::OkStatus();
      }
      case NodeKind::kIf:
        return ExecuteIf(node);
      case NodeKind::kFor:
        return ExecuteFor(node);
      default:
        for (const auto& child : node.children) ATTENDANT_RETURN_IF_ERROR(Execute(*child));
        return absl::OkStatus();
    }
  }

 private:
  absl::Status CountStep(const Node& node) {
    if (++steps_ <= kMaxTemplateSteps) return absl::OkStatus();
    return Invalid(node.line,
                   absl::StrCat("the template takes more than ", kMaxTemplateSteps, " steps"));
  }

  static absl::Status AtLine(const Node& node, const absl::Status& status) {
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat("line ", node.line, ": ", status.message()));
  }
  template <typename T>
  static absl::StatusOr<T> AtLine(const Node& node, absl::StatusOr<T> value) {
    if (value.ok()) return value;
    return AtLine(node, value.status());
  }

  absl::Status ExecuteIf(const Node& node) {
    size_t i = 0;
    for (; i + 1 < node.children.size(); i += 2) {
      ATTENDANT_ASSIGN_OR_RETURN(const bool holds, Holds(*node.children[i]));
      if (holds) return Execute(*node.children[i + 1]);
    }
    return i < node.children.size() ? Execute(*node.children[i]) : absl::OkStatus();
  }

  // A variable that a turn sets is gone in the next turn, as in Jinja.
  absl::Status ExecuteFor(const Node& node) {
    ATTENDANT_ASSIGN_OR_RETURN(const Value list, Evaluate(*node.children[0]));
    if (list.kind != ValueKind::kList && list.kind != ValueKind::kLazyList &&
        list.kind != ValueKind::kUndefined) {
      return Unknown(node.line, "`for` over a value that is no list is not supported");
    }
    const auto count = static_cast<int64_t>(list.list.size());
    for (int64_t i = 0; i < count; ++i) {
      Names names;
      names["loop"] = {.kind = ValueKind::kLoop, .number = i, .count = count};
      names[node.text] = list.list[static_cast<size_t>(i)];
      scopes_.push_back(std::move(names));
      ATTENDANT_RETURN_IF_ERROR(Execute(*node.children[1]));
      scopes_.pop_back();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Holds(const Node& node) {
    ATTENDANT_ASSIGN_OR_RETURN(const Value value, Evaluate(node));
    return AtLine(node, IsTrue(value));
  }

  Evaluated Evaluate(const Node& node) {
    ATTENDANT_RETURN_IF_ERROR(CountStep(node));
    ATTENDANT_ASSIGN_OR_RETURN(Value value, EvaluateKind(node));
    work_ += SizeOf(value);
    if (work_ <= kMaxTemplateWork) return value;
    return Invalid(node.line, absl::StrCat("the template makes more than ", kMaxTemplateWork,
                                           " bytes of values, over all prompts"));
  }

  Evaluated EvaluateKind(const Node& node) {
    switch (node.kind) {
      case NodeKind::kString:
        return Value::Text(node.text);
      case NodeKind::kInteger:
        return Value::Integer(node.number);
      case NodeKind::kName:
        return Find(node.text);
      case NodeKind::kCall:
        return Call(node);
      case NodeKind::kNot: {
        ATTENDANT_ASSIGN_OR_RETURN(const bool holds, Holds(*node.children[0]));
        return Value::Bool(!holds);
      }
      case NodeKind::kAnd:
      case NodeKind::kOr: {
        ATTENDANT_ASSIGN_OR_RETURN(Value left, Evaluate(*node.children[0]));
        ATTENDANT_ASSIGN_OR_RETURN(const bool holds, AtLine(node, IsTrue(left)));
        if (holds == (node.kind == NodeKind::kOr)) return left;
        return Evaluate(*node.children[1]);
      }
      case NodeKind::kChoice: {
        ATTENDANT_ASSIGN_OR_RETURN(const bool holds, Holds(*node.children[0]));
        if (holds) return Evaluate(*node.children[1]);
        return node.children.size() > 2 ? Evaluate(*node.children[2]) : Value();
      }
      default:
        return EvaluateOperands(node);
    }
  }

  Evaluated Find(const std::string& name) const {
    if (name == "true" || name == "True") return Value::Bool(true);
    if (name == "false" || name == "False") return Value::Bool(false);
    if (name == "none" || name == "None") return Value{.kind = ValueKind::kNone};
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(name);
      if (found != scope->end()) return found->second;
    }
    return Value();
  }

  Evaluated Call(const Node& node) {
    if (node.text != "raise_exception" || node.children.size() != 1) {
      return Unknown(node.line, absl::StrCat("function ", Quoted(node.text), " is not supported"));
    }
    ATTENDANT_ASSIGN_OR_RETURN(const Value value, Evaluate(*node.children[0]));
    ATTENDANT_ASSIGN_OR_RETURN(const std::string message, AtLine(node, FixedText(value)));
    return Invalid(node.line, absl::StrCat("the template refuses the messages: ", Quoted(message)));
  }

  // The values of all children, then what the node makes of them.
  Evaluated EvaluateOperands(const Node& node) {
    std::vector<Value> values;
    for (const auto& child : node.children) {
      ATTENDANT_ASSIGN_OR_RETURN(values.emplace_back(), Evaluate(*child));
    }
    return AtLine(node, Combine(node, std::move(values)));
  }

  static Evaluated Combine(const Node& node, std::vector<Value> values) {
    switch (node.kind) {
      case NodeKind::kAttribute:
        return GetAttribute(values[0], node.text);
      case NodeKind::kItem:
        return ItemOf(values[0], values[1]);
      case NodeKind::kTest:
        return Test(node.text, values[0]);
      case NodeKind::kCompare:
        return Compare(node.text, values[0], values[1]);
      case NodeKind::kConcat:
        return Join(values[0], values[1]);
      case NodeKind::kAdd:
        return Add(values[0], values[1]);
      default: {  // a filter
        Value value = std::move(values[0]);
        values.erase(values.begin());
        return ApplyFilter(node.text, std::move(value), {std::move(values), node.names});
      }
    }
  }

  static Evaluated ItemOf(const Value& value, const Value& index) {
    if (index.kind == ValueKind::kInteger) return GetItem(value, index.number);
    ATTENDANT_ASSIGN_OR_RETURN(const std::string name, FixedText(index));
    return GetAttribute(value, name);
  }

  static Evaluated Test(const std::string& name, const Value& value) {
    if (name == "defined") return Value::Bool(value.kind != ValueKind::kUndefined);
    if (name == "undefined") return Value::Bool(value.kind == ValueKind::kUndefined);
    if (name == "none") return Value::Bool(value.kind == ValueKind::kNone);
    if (name == "string") return Value::Bool(value.kind == ValueKind::kText);
    return absl::UnimplementedError(absl::StrCat(
        "test ", Quoted(name), " is not supported; supported: defined, none, string, undefined"));
  }

  static Evaluated Compare(const std::string& comparison, const Value& a, const Value& b) {
    if (comparison == "==" || comparison == "!=") {
      ATTENDANT_ASSIGN_OR_RETURN(const bool equal, IsEqual(a, b));
      return Value::Bool(equal == (comparison == "=="));
    }
    const bool swapped = comparison == ">" || comparison == "<=";
    ATTENDANT_ASSIGN_OR_RETURN(const bool less, swapped ? IsLess(b, a) : IsLess(a, b));
    return Value::Bool(less == (comparison.size() == 1));
  }

  static Evaluated Join(const Value& a, const Value& b) {
    ATTENDANT_ASSIGN_OR_RETURN(ChatText text, ToText(a));
    ATTENDANT_ASSIGN_OR_RETURN(const ChatText more, ToText(b));
    ATTENDANT_RETURN_IF_ERROR(Append(more, text));
    return Value::Text(std::move(text));
  }

  static Evaluated Add(const Value& a, const Value& b) {
    if (a.is_number() && b.is_number()) {
      int64_t sum = 0;
      if (!__builtin_add_overflow(a.number, b.number, &sum)) return Value::Integer(sum);
      return absl::UnimplementedError("a number beyond 64 bits is not supported");
    }
    if (a.kind == ValueKind::kText && b.kind == ValueKind::kText) return Join(a, b);
    return absl::UnimplementedError("`+` of values that are neither texts nor numbers");
  }

  std::vector<Names> scopes_;
  ChatText out_;
  int steps_ = 0;
  size_t& work_;
};

}  // namespace
}  // namespace chat

absl::StatusOr<ChatTemplate> ChatTemplate::Parse(absl::string_view source) {
  ATTENDANT_ASSIGN_OR_RETURN(std::shared_ptr<const chat::Node> root, chat::ParseTemplate(source));
  return ChatTemplate(std::move(root));
}

absl::StatusOr<ChatText> ChatTemplate::Render(const std::vector<ChatMessage>& messages,
                                              const std::map<std::string, ChatVariable>& variables,
                                              size_t& work) const {
  chat::Names names;
  for (const auto& [name, value] : variables) {
    names[name] = chat::FromVariable(value);
    work += chat::SizeOf(names[name]);
  }
  chat::Value& list = names["messages"];
  list.kind = chat::ValueKind::kList;
  for (const ChatMessage& message : messages) {
    list.list.push_back({.kind = chat::ValueKind::kMessage, .message = &message});
  }
  chat::Run run(std::move(names), work);
  ATTENDANT_RETURN_IF_ERROR(run.Execute(*root_));
  return run.Take();
}

}  // namespace attendant
