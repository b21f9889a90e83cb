// SPDX-License-Identifier: Apache-2.0
// A chat template, which renders a query and a document that are not known, with and without a
// message of the system.
//
// Ends the process, saying why, unless a refusal has a reason and one of the two codes that
// ChatTemplate promises, and what the template makes holds for whatever the two texts are.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/text/chat_template/chat_template.h"
#include "tests/fuzz/harness.h"

namespace attendant {
namespace {

constexpr int kQuery = 0, kDocument = 1;

void RequireReason(const absl::Status& status) {
  const bool promised = absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
  Require(promised && !status.message().empty(),
          absl::StrCat("a refusal has a reason and a code of two: ", status.ToString()));
}

// The content of a message that is known.
ChatText Known(absl::string_view text) {
  return text.empty() ? ChatText() : ChatText{{.fixed = std::string(text)}};
}

std::vector<ChatMessage> Messages(bool system, ChatText query, ChatText document) {
  std::vector<ChatMessage> messages;
  if (system) messages.push_back({.role = "system", .content = Known("Judge.")});
  messages.push_back({.role = "query", .content = std::move(query)});
  messages.push_back({.role = "document", .content = std::move(document)});
  return messages;
}

absl::StatusOr<ChatText> Render(const ChatTemplate& chat, const std::vector<ChatMessage>& messages,
                                size_t& work) {
  static const auto& variables = *new std::map<std::string, ChatVariable>{
      {"add_generation_prompt", true}, {"bos_token", "<s>"}, {"steps", 3}, {"tools", {}}};
  return chat.Render(messages, variables, work);
}

std::string Fill(const ChatText& text, absl::string_view query, absl::string_view document) {
  std::string filled;
  for (const ChatPart& part : text) {
    absl::StrAppend(&filled, part.unknown == kQuery      ? query
                             : part.unknown == kDocument ? document
                                                         : part.fixed);
  }
  return filled;
}

// Known texts take more of a template's memory than unknown ones do, and may pass its bound.
void CheckKnown(const ChatTemplate& chat, bool system, const ChatText& rendered,
                absl::string_view query, absl::string_view document) {
  size_t work = 0;
  const absl::StatusOr<ChatText> known =
      Render(chat, Messages(system, Known(query), Known(document)), work);
  if (work > kMaxTemplateWork) return;
  Require(known.ok(), absl::StrCat("known texts are rendered too: ", known.status().ToString()));
  Require(Fill(*known, "", "") == Fill(rendered, query, document),
          "what a template makes holds for all texts");
}

void Run(absl::string_view source) {
  const absl::StatusOr<ChatTemplate> chat = ChatTemplate::Parse(source);
  if (!chat.ok()) return RequireReason(chat.status());
  for (const bool system : {false, true}) {
    size_t work = 0;
    const absl::StatusOr<ChatText> rendered =
        Render(*chat, Messages(system, {{.unknown = kQuery}}, {{.unknown = kDocument}}), work);
    if (!rendered.ok()) {
      RequireReason(rendered.status());
      continue;
    }
    CheckKnown(*chat, system, *rendered, "", "");
    CheckKnown(*chat, system, *rendered, " query\n", "{{ document }}");
    CheckKnown(*chat, system, *rendered, "query", "query");
  }
}

}  // namespace
}  // namespace attendant

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attendant::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
