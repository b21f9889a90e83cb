// SPDX-License-Identifier: Apache-2.0
// Tokenizes a list of texts on one thread, for compare.py: tokenizer_bench FOLDER TEXTS.json. For
// each line on stdin it goes through all texts once and prints the tokens found and the processor
// time in nanoseconds.
#include <time.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text/tokenizer.h"

namespace attendant {
namespace {

int64_t ThreadNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// -1 where a text is refused.
int64_t CountTokens(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  constexpr int64_t kNoLimit = int64_t{1} << 30;
  int64_t tokens = 0;
  for (const std::string& text : texts) {
    const absl::StatusOr<TokenizedText> tokenized =
        tokenizer.Tokenize(text, {.max_tokens = kNoLimit});
    if (!tokenized.ok()) return -1;
    tokens += static_cast<int64_t>(tokenized->token_ids.size());
  }
  return tokens;
}

int Run(const std::string& folder, const std::string& texts_path) {
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(folder);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status() << "\n";
    return 1;
  }
  std::ifstream file(texts_path);
  const auto texts = nlohmann::json::parse(file).get<std::vector<std::string>>();
  for (std::string line; std::getline(std::cin, line);) {
    const int64_t start = ThreadNanoseconds();
    const int64_t tokens = CountTokens(**tokenizer, texts);
    std::cout << tokens << " " << ThreadNanoseconds() - start << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: tokenizer_bench FOLDER TEXTS.json\n";
    return 2;
  }
  return attendant::Run(argv[1], argv[2]);
}
