// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/load_protocols.h"

namespace attendant::client {
namespace {

constexpr LoadProtocol kProtocols[] = {
    {.word = "attendant",
     .title = "attendant.v1",
     .make = MakeAttendantTarget,
     .has_streams = true,
     .has_versions = true,
     .takes_output = true,
     .takes_vocab = true},
    {.word = "kserve",
     .title = "KServe v2",
     .make = MakeKserveTarget,
     .has_streams = true,
     .needs_model = true,
     .has_versions = true,
     .takes_vocab = true,
     .takes_shape = true},
    {.word = "tei", .title = "tei.v1", .make = MakeTeiTarget, .has_streams = true},
    {.word = "kserve_http",
     .title = "KServe v2 over HTTP",
     .make = MakeKserveHttpTarget,
     .needs_model = true,
     .has_versions = true,
     .takes_vocab = true,
     .takes_shape = true,
     .takes_tensors = true},
    {.word = "tei_http", .title = "TEI /embed", .make = MakeTeiHttpTarget},
    {.word = "tei_rerank", .title = "TEI /rerank", .make = MakeTeiRerankTarget},
    {.word = "openai",
     .title = "OpenAI embeddings",
     .make = MakeOpenAiTarget,
     .needs_model = true,
     .takes_vocab = true},
    {.word = "cohere", .title = "Cohere /v2/embed", .make = MakeCohereTarget, .needs_model = true},
    {.word = "cohere_rerank",
     .title = "Cohere /v2/rerank",
     .make = MakeCohereRerankTarget,
     .needs_model = true},
};

}  // namespace

std::span<const LoadProtocol> LoadProtocols() { return kProtocols; }

const LoadProtocol& FindLoadProtocol(absl::string_view word) {
  for (const LoadProtocol& row : kProtocols) {
    if (row.word == word) return row;
  }
  return kProtocols[0];
}

}  // namespace attendant::client
