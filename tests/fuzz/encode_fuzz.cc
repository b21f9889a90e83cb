// SPDX-License-Identifier: Apache-2.0
// An EncodeRequest as it comes from the wire: decoded, tokenized, checked.
#include <memory>

#include "kernels/core/check.h"
#include "kernels/core/packed_batch.h"
#include "server/limits/limits.h"
#include "server/protocols/encoder/messages.h"
#include "server/requests/encode_validation.h"
#include "tests/fuzz/harness.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

constexpr EncodeLimits kLimits = {.max_request_sequences = 64,
                                  .max_response_bytes = 1 << 20,
                                  .max_attention_weight_bytes = 1 << 19};

// What validation asks for: a config.
class ConfigOnly final : public PreparedEncoder {
 public:
  const EncoderConfig& config() const override { return kTinyConfig; }
  const PreparedInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Session>> NewSession(const SessionLimits&,
                                                      const ThreadTeam&) const override {
    return absl::UnimplementedError("it computes nothing");
  }

 private:
  const PreparedInfo info_{};
};

std::unique_ptr<EncoderModel> NewModel() {
  const TempDirectory directory;
  WriteFile(directory / "tokenizer.json", TinyTokenizer(0));
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(directory.path());
  ATTENDANT_CHECK(tokenizer.ok());
  auto model = std::make_unique<EncoderModel>();
  model->name = "tiny";
  model->sentence.max_text_tokens = kTinyMaxTextTokens;
  model->max_sequence_tokens = kTinyConfig.max_positions;
  model->tokenizer = *std::move(tokenizer);
  model->encoder = std::make_unique<ConfigOnly>();
  return model;
}

void Encode(const v1::EncodeRequest& request) {
  static const EncoderModel& model = *NewModel().release();
  absl::StatusOr<EncodeInput> decoded = FromProto(request, kLimits);
  if (!decoded.ok()) return;
  EncodeOutput output;
  const absl::StatusOr<WorkRequest> valid =
      ValidateEncode(model, kLimits, *std::move(decoded), output);
  if (!valid.ok()) return;
  ATTENDANT_CHECK(output.response_bytes <= kLimits.max_response_bytes);
  ATTENDANT_CHECK(output.attention_bytes <= kLimits.max_attention_weight_bytes);
  // What a session indexes its tables with.
  for (const SequenceInput& input : valid->encode().sequences) {
    ATTENDANT_CHECK(
        ValidateSequence(model.config(), input.token_ids, input.positions, input.segment_ids).ok());
    ATTENDANT_CHECK(input.len() >= 1 && input.len() <= model.max_sequence_tokens);
    for (const TokenSpan& span : input.spans) {
      ATTENDANT_CHECK(span.begin >= 0 && span.begin < span.end &&
                      span.end <= model.max_sequence_tokens);
    }
  }
}

}  // namespace
}  // namespace attendant

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attendant::v1::EncodeRequest request;
  if (request.ParseFromArray(data, static_cast<int>(size))) attendant::Encode(request);
  return 0;
}
