// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

namespace chat {
struct Node;
}

// A piece of a text that is not all known yet: fixed text, or the place of an unknown one.
struct ChatPart {
  static constexpr int kFixed = -1;

  int unknown = kFixed;  // else the number of the unknown text
  std::string fixed{};

  bool operator==(const ChatPart&) const = default;
};
// Without two fixed parts in a row, and without empty ones.
using ChatText = std::vector<ChatPart>;

struct ChatMessage {
  std::string role;
  ChatText content;
};

// The values that a template finds under a name, beside `messages`.
using ChatVariable = std::variant<std::monostate, bool, int64_t, std::string>;

// Limits of a template, which is a file that nobody vouches for: beyond any of them it is refused.
inline constexpr size_t kMaxTemplateBytes = 128 << 10;
inline constexpr int kMaxTemplateDepth = 48;           // of blocks and expressions in each other
inline constexpr int kMaxTemplateSteps = 20'000;       // blocks and expressions that run
inline constexpr size_t kMaxRenderedBytes = 32 << 10;  // of each text that it makes
inline constexpr size_t kMaxTemplateWork = 16 << 20;   // bytes of the values that it makes

// A chat template of transformers, in a subset of Jinja: text, comments, whitespace control;
// `set`, `if`, `for` over messages; texts, integers, booleans, `none`, names, `.role`, `["role"]`,
// `[0]`; `~ + == != < <= > >= and or not`, `a if b else c`; the filters default, first, last,
// length, list, map(attribute=), rejectattr, selectattr, string and trim; the tests defined, none,
// string and undefined; loop.first, .last, .index, .index0, .length; raise_exception.
//
// It runs with texts that are not known: they may be put anywhere, and nothing may depend on what
// they hold. So its result holds for all of them. Immutable, thread-safe.
class ChatTemplate {
 public:
  // UNIMPLEMENTED, with the line, for what is not of the subset; INVALID_ARGUMENT for a template
  // that is not valid, or beyond a limit.
  static absl::StatusOr<ChatTemplate> Parse(absl::string_view source);

  // Renders the messages. UNIMPLEMENTED and INVALID_ARGUMENT as for Parse; INVALID_ARGUMENT also
  // for errors that the template raises. `work`: the bytes of the values that runs made or copied;
  // the run adds its own, and kMaxTemplateWork bounds the sum.
  absl::StatusOr<ChatText> Render(const std::vector<ChatMessage>& messages,
                                  const std::map<std::string, ChatVariable>& variables,
                                  size_t& work) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const chat::Node> root) : root_(std::move(root)) {}

  std::shared_ptr<const chat::Node> root_;
};

}  // namespace attendant
