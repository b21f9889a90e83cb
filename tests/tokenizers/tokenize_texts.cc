// SPDX-License-Identifier: Apache-2.0
// Tokenizes texts for compare.py: tokenize_texts FOLDER, with one JSON object a line on stdin.
//
//   {"text": "...", "second": "..." for a pair, "max_tokens": 9, "left": true}
//   -> {"ids": [...], "segments": [...], "characters": [[0, 1], ...], "bytes": [[0, 1], ...]}
//
// An answer without ids has "error".
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text/tokenizer.h"

namespace attendant {
namespace {

using nlohmann::json;

absl::StatusOr<TokenizedText> Tokenize(const Tokenizer& tokenizer, const json& request,
                                       OffsetUnit unit) {
  constexpr int64_t kNoLimit = int64_t{1} << 30;
  const bool left = request.value("left", false);
  const TokenizerOptions options{.max_tokens = request.value("max_tokens", kNoLimit),
                                 .side = left ? TruncationSide::kLeft : TruncationSide::kRight,
                                 .offsets = unit};
  const auto text = request.at("text").get<std::string>();
  if (!request.contains("second")) return tokenizer.Tokenize(text, options);
  return tokenizer.TokenizePair(text, request.at("second").get<std::string>(), options);
}

json AsJson(const std::vector<TokenOffset>& offsets) {
  json list = json::array();
  for (const TokenOffset& offset : offsets) list.push_back({offset.begin, offset.end});
  return list;
}

json Answer(const Tokenizer& tokenizer, const json& request) {
  const absl::StatusOr<TokenizedText> plain = Tokenize(tokenizer, request, OffsetUnit::kNone);
  if (!plain.ok()) return {{"error", plain.status().ToString()}};
  json answer = {{"ids", plain->token_ids}, {"segments", plain->segment_ids}};
  for (const auto& [name, unit] :
       {std::pair{"characters", OffsetUnit::kCharacters}, std::pair{"bytes", OffsetUnit::kBytes}}) {
    const absl::StatusOr<TokenizedText> aligned = Tokenize(tokenizer, request, unit);
    if (!aligned.ok()) return {{"error", aligned.status().ToString()}};
    if (aligned->token_ids != plain->token_ids) return {{"error", "offsets change the ids"}};
    answer[name] = AsJson(aligned->offsets);
  }
  return answer;
}

int Run(const std::string& folder) {
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(folder);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status() << "\n";
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << Answer(**tokenizer, json::parse(line)).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tokenize_texts FOLDER < requests\n";
    return 2;
  }
  return attendant::Run(argv[1]);
}
