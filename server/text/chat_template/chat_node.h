// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::chat {

enum class NodeKind : uint8_t {
  // Blocks.
  kBlock,  // children one after the other
  kText,   // `text`
  kPrint,  // child 0
  kSet,    // the name `text` to child 0
  kIf,     // a condition and its block, again and again; an odd last child is the else block
  kFor,    // the name `text` for each of child 0, block child 1
  // Expressions.
  kString,     // `text`
  kInteger,    // `number`
  kName,       // `text`, of a variable
  kAttribute,  // `text` of child 0
  kItem,       // child 1 of child 0
  kFilter,     // `text` of child 0, with the other children as arguments; `names` of those
  kTest,       // `text` of child 0
  kCall,       // the function `text`, with children
  kNot,        // child 0
  kAnd,        // children 0 and 1; likewise those below
  kOr,
  kCompare,  // by the operator `text`
  kConcat,
  kAdd,
  kChoice,  // child 1 if child 0; else child 2, if it is there
};

struct Node {
  NodeKind kind = NodeKind::kBlock;
  int line = 1;
  std::string text{};
  int64_t number = 0;
  std::vector<std::shared_ptr<const Node>> children{};
  std::vector<std::string> names{};  // empty for an argument without a name
  int depth = 1;
};

// The tree of a template. Errors are those of ChatTemplate::Parse.
absl::StatusOr<std::shared_ptr<const Node>> ParseTemplate(absl::string_view source);

}  // namespace attendant::chat
