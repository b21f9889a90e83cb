// SPDX-License-Identifier: Apache-2.0
// embed HOST:PORT TEXT ...: prints the cosine of each text and the first one.
#include <cstddef>
#include <iostream>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace {

using attendant::client::Client;
using attendant::client::Tensor;

absl::StatusOr<Tensor> Embed(const std::string& target, const std::vector<std::string>& texts) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = target});
  if (!client.ok()) return client.status();
  return (*client)->Embed(texts, {.pooled = {.normalize = true}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: embed HOST:PORT TEXT ...\n";
    return 2;
  }
  const std::vector<std::string> texts(argv + 2, argv + argc);
  const absl::StatusOr<Tensor> embeddings = Embed(argv[1], texts);
  if (!embeddings.ok()) {
    std::cerr << embeddings.status() << "\n";
    return 1;
  }
  const auto dims = static_cast<size_t>(embeddings->shape[1]);
  const auto row = [&](size_t i) { return std::span(embeddings->values).subspan(i * dims, dims); };
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::span<const float> first = row(0), other = row(i);
    std::cout << std::inner_product(first.begin(), first.end(), other.begin(), 0.0f) << "  "
              << texts[i] << "\n";
  }
  return 0;
}
