// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/inputs.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/requests/ranking.h"

namespace attendant {
namespace {

using Kind = JsonView::Kind;

constexpr absl::string_view kInputKinds =
    "a string, an array of strings, an array of token ids, or an array of arrays of token ids";

absl::Status CheckCount(absl::string_view field, size_t count, const EncodeLimits& limits) {
  if (count == 0) return absl::InvalidArgumentError(absl::StrCat(field, " is empty"));
  if (count <= static_cast<size_t>(limits.max_request_sequences)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " has ", count, " elements, the limit is ",
                                                 limits.max_request_sequences));
}

absl::Status Missing(absl::string_view field) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is missing"));
}

absl::StatusOr<JsonView> Required(JsonView request, absl::string_view field) {
  const std::optional<JsonView> value = request.Find(field);
  if (value) return *value;
  return Missing(field);
}

absl::Status IdsFromJson(absl::string_view where, JsonView array, Sequences& sequences) {
  IdsInput ids;
  ids.token_ids.reserve(array.size());
  ATTENDANT_RETURN_IF_ERROR(array.ForEach([&](JsonView id) {
    if (id.kind() != Kind::kInteger) {
      return WrongJsonType(absl::StrCat(where, "[", ids.token_ids.size(), "]"), "a token id", id);
    }
    ids.token_ids.push_back(id.Integer());
    return absl::OkStatus();
  }));
  sequences.emplace_back(std::move(ids));
  return absl::OkStatus();
}

Kind KindOfFirst(JsonView array) {
  Kind kind = Kind::kNull;
  (void)array.ForEach([&kind](JsonView element) {
    kind = element.kind();
    return absl::CancelledError();  // the others do not matter
  });
  return kind;
}

absl::Status ElementFromJson(absl::string_view field, JsonView element, bool ids_too,
                             Sequences& sequences) {
  if (element.kind() == Kind::kString) {
    sequences.emplace_back(std::string(element.String()));
    return absl::OkStatus();
  }
  const std::string where = absl::StrCat(field, "[", sequences.size(), "]");
  if (ids_too && element.kind() == Kind::kArray) return IdsFromJson(where, element, sequences);
  return WrongJsonType(where, ids_too ? "a string or an array of token ids" : "a string", element);
}

// A text, or one or two texts in an array.
absl::Status TextOrPairFromJson(absl::string_view where, JsonView value, Sequences& sequences) {
  if (value.kind() == Kind::kString) {
    sequences.emplace_back(std::string(value.String()));
    return absl::OkStatus();
  }
  constexpr char kExpected[] = "a string, or an array of one or two strings";
  if (value.kind() != Kind::kArray || value.size() < 1 || value.size() > 2) {
    return WrongJsonType(where, kExpected, value);
  }
  std::vector<std::string> texts;
  ATTENDANT_RETURN_IF_ERROR(value.ForEach([&](JsonView text) {
    if (text.kind() != Kind::kString) return WrongJsonType(where, kExpected, text);
    texts.emplace_back(text.String());
    return absl::OkStatus();
  }));
  if (texts.size() == 1) {
    sequences.emplace_back(std::move(texts[0]));
  } else {
    sequences.emplace_back(TextPair{.first = std::make_shared<const std::string>(texts[0]),
                                    .second = std::move(texts[1])});
  }
  return absl::OkStatus();
}

struct InputType {
  absl::string_view name;
  std::vector<const char*> prompts;  // the first one that the model has
  bool is_search = false;
};

const std::vector<InputType>& KnownTypes() {
  static const auto& types =
      *new std::vector<InputType>{{"search_query", {"query"}, true},
                                  {"query", {"query"}, true},
                                  {"search_document", {"document", "passage", "corpus"}, true},
                                  {"document", {"document", "passage", "corpus"}, true},
                                  {"passage", {"document", "passage", "corpus"}, true},
                                  {"classification", {"classification"}},
                                  {"clustering", {"clustering"}}};
  return types;
}

void ChoosePrompt(const InputType& type, const Prompts& prompts, EncodeInput& input) {
  for (const char* name : type.prompts) {
    if (!prompts.by_name.contains(name)) continue;
    input.prompt_name = name;
    return;
  }
  if (type.is_search) input.prompt_name = "";
}

}  // namespace

absl::Status SequencesFromJson(JsonView request, absl::string_view field,
                               const EncodeLimits& limits, Sequences& sequences) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonView value, Required(request, field));
  if (value.kind() == Kind::kString) return ElementFromJson(field, value, true, sequences);
  if (value.kind() != Kind::kArray) return WrongJsonType(field, kInputKinds, value);
  if (KindOfFirst(value) == Kind::kInteger) return IdsFromJson(field, value, sequences);
  ATTENDANT_RETURN_IF_ERROR(CheckCount(field, value.size(), limits));
  return value.ForEach(
      [&](JsonView element) { return ElementFromJson(field, element, true, sequences); });
}

absl::StatusOr<JsonView> ListFromJson(JsonView request, absl::string_view field,
                                      absl::string_view expected, const EncodeLimits& limits) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonView value, Required(request, field));
  if (value.kind() != Kind::kArray) return WrongJsonType(field, expected, value);
  ATTENDANT_RETURN_IF_ERROR(CheckCount(field, value.size(), limits));
  return value;
}

absl::Status TextsFromJson(JsonView request, absl::string_view field, const EncodeLimits& limits,
                           Sequences& sequences) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonView value,
                             ListFromJson(request, field, "an array of strings", limits));
  return value.ForEach(
      [&](JsonView element) { return ElementFromJson(field, element, false, sequences); });
}

absl::Status TextsOrPairsFromJson(JsonView request, absl::string_view field,
                                  const EncodeLimits& limits, Sequences& sequences, bool& many) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonView value, Required(request, field));
  many = value.kind() == Kind::kArray && KindOfFirst(value) == Kind::kArray;
  if (!many) return TextOrPairFromJson(field, value, sequences);
  ATTENDANT_RETURN_IF_ERROR(CheckCount(field, value.size(), limits));
  return value.ForEach([&](JsonView element) {
    return TextOrPairFromJson(absl::StrCat(field, "[", sequences.size(), "]"), element, sequences);
  });
}

absl::Status PairsFromJson(JsonView request, absl::string_view query, absl::string_view texts,
                           const EncodeLimits& limits, Sequences& sequences) {
  return PairsFromJson(query, request.Find(query), request, texts, limits, sequences);
}

absl::Status PairsFromJson(absl::string_view name, std::optional<JsonView> query, JsonView request,
                           absl::string_view texts, const EncodeLimits& limits,
                           Sequences& sequences) {
  if (!query) return Missing(name);
  if (query->kind() != Kind::kString) return WrongJsonType(name, "a string", *query);
  ATTENDANT_ASSIGN_OR_RETURN(const JsonView value,
                             ListFromJson(request, texts, "an array", limits));
  const auto shared = std::make_shared<const std::string>(query->String());
  ATTENDANT_RETURN_IF_ERROR(CheckQuery(name, *shared, static_cast<int64_t>(value.size())));
  return value.ForEach([&](JsonView element) {
    const std::optional<JsonView> text =
        element.kind() == Kind::kObject ? element.Find("text") : element;
    if (!text || text->kind() != Kind::kString) {
      return WrongJsonType(absl::StrCat(texts, "[", sequences.size(), "]"),
                           "a string, or an object with a string `text`", element);
    }
    sequences.emplace_back(TextPair{.first = shared, .second = std::string(text->String())});
    return absl::OkStatus();
  });
}

absl::Status CountFromJson(JsonView request, absl::string_view field, int64_t& count,
                           int64_t minimum) {
  std::optional<int64_t> given;
  ATTENDANT_RETURN_IF_ERROR(request.Read(field, given));
  if (given && *given < minimum) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is ", *given, ", the minimum is ", minimum));
  }
  count = given.value_or(0);
  return absl::OkStatus();
}

absl::Status InputTypeFromJson(JsonView request, const Prompts& prompts, UnknownInputType unknown,
                               EncodeInput& input) {
  std::optional<std::string> type;
  ATTENDANT_RETURN_IF_ERROR(request.Read("input_type", type));
  if (!type) return absl::OkStatus();
  for (const InputType& one : KnownTypes()) {
    if (one.name != *type) continue;
    ChoosePrompt(one, prompts, input);
    return absl::OkStatus();
  }
  if (unknown == UnknownInputType::kDefaultPrompt) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input_type must be search_document, search_query, document, passage, query, "
                   "classification or clustering, not ",
                   Quote(*type)));
}

absl::Status TaskFromJson(JsonView request, const EncoderModel& model, EncodeInput& input) {
  std::optional<std::string> task;
  ATTENDANT_RETURN_IF_ERROR(request.Read("task", task));
  if (!task) return absl::OkStatus();
  if (!model.adapter.empty() && *task != model.adapter) {
    return absl::InvalidArgumentError(absl::StrCat("task is ", Quote(*task), ", but model ",
                                                   Quote(model.name), " has the adapter ",
                                                   Quote(model.adapter), " in its weights"));
  }
  if (model.prompts.by_name.contains(*task)) {
    input.prompt_name = std::move(task);
    return absl::OkStatus();
  }
  constexpr absl::string_view kOthers[] = {"text-matching", "separation", "classification",
                                           "clustering"};
  if (absl::c_linear_search(kOthers, *task)) return absl::OkStatus();
  const size_t dot = task->rfind('.');
  const absl::string_view ending =
      dot == std::string::npos ? absl::string_view() : absl::string_view(*task).substr(dot + 1);
  for (const InputType& one : KnownTypes()) {
    if (one.name != ending || (ending != "query" && ending != "passage")) continue;
    ChoosePrompt(one, model.prompts, input);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("task must be a prompt of the model, retrieval.query, retrieval.passage, "
                   "text-matching, classification, clustering or separation, not ",
                   Quote(*task)));
}

absl::Status TruncationWordFromJson(JsonView request, Truncation absent, Truncation& truncation) {
  std::optional<std::string> word;
  ATTENDANT_RETURN_IF_ERROR(request.Read("truncate", word));
  truncation = absent;
  if (!word) return absl::OkStatus();
  constexpr std::pair<absl::string_view, Truncation> kWords[] = {
      {"START", Truncation::kLeft}, {"END", Truncation::kRight}, {"NONE", Truncation::kNone}};
  for (const auto& [known, meaning] : kWords) {
    if (*word != known) continue;
    truncation = meaning;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("truncate must be START, END or NONE, not ", Quote(*word)));
}

absl::Status SideFromJson(JsonView request, absl::string_view field,
                          std::optional<Truncation>& side) {
  std::optional<std::string> word;
  ATTENDANT_RETURN_IF_ERROR(request.Read(field, word));
  if (!word) return absl::OkStatus();
  const bool left = absl::EqualsIgnoreCase(*word, "left");
  if (!left && !absl::EqualsIgnoreCase(*word, "right")) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must be left or right, not ", Quote(*word)));
  }
  side = left ? Truncation::kLeft : Truncation::kRight;
  return absl::OkStatus();
}

}  // namespace attendant
