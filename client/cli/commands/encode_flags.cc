// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/encode_flags.h"

#include <utility>

namespace attendant::client {

void EncodeFlags::AddTo(FlagSet& flags) {
  flags.Add("model", &model, "NAME", "The model; not needed when the server has only one");
  flags.Add("file", &file, "FILE", "Texts, one per line; - is standard input");
  flags.Add("output", &output, "FILE.npy", "Write the values to a NumPy file");
  flags.AddChoice<DType>("dtype", &dtype,
                         {{"f32", DType::kF32}, {"bf16", DType::kBf16}, {"f16", DType::kF16}},
                         "Number format on the wire (default f32)");
  flags.AddChoice<Truncation>(
      "truncation", &truncation,
      {{"text", Truncation::kTextOnly}, {"none", Truncation::kNone}, {"right", Truncation::kRight}},
      "What to cut when it is too long; the rest is refused: text only, "
      "nothing, or texts and ids (default text)");
  flags.Add("priority", &priority, "N", "From -100 to 100; higher is served first");
  flags.Add("batch", &limits.max_sequences, "N", "Most sequences in one request");
  flags.Add("concurrency", &limits.max_concurrency, "N", "Most requests at once");
}

absl::StatusOr<EncodeRequest> EncodeFlags::Prototype(Client& client) const {
  if (limits.max_sequences == 0 || limits.max_concurrency == 0) {
    return absl::FailedPreconditionError("--batch and --concurrency must be at least 1");
  }
  EncodeRequest prototype;
  prototype.model = model;
  prototype.dtype = dtype;
  prototype.truncation = truncation;
  prototype.priority = priority;
  if (!model.empty()) return prototype;
  absl::StatusOr<std::string> only_model = client.OnlyModel();
  if (!only_model.ok()) return only_model.status();
  prototype.model = *std::move(only_model);
  return prototype;
}

}  // namespace attendant::client
