// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/encoder/word_weights.h"

#include <cstdint>
#include <string>

#include "server/protocols/wire/messages.h"

namespace attendant {

void WordsToProto(const EncodeOutput& output, const AnswerForm& form,
                  v1::EncodeResponse& response) {
  v1::WordWeights& words = *response.mutable_words();
  for (int i = 0; i < response.sequences_size(); ++i) {
    const EncodedSequence& sequence = output.sequences[static_cast<size_t>(i)];
    response.mutable_sequences(i)->set_words(
        static_cast<int64_t>(sequence.rare_outputs().words.size()));
    for (const std::string& word : sequence.rare_outputs().words) words.add_words(word);
  }
  const int64_t shape[] = {words.words_size()};
  std::string& bytes = StartTensor(shape, form.numbers, *words.mutable_weights());
  for (const EncodedSequence& sequence : output.sequences) {
    AppendValues(sequence.rare_outputs().word_weights, form.numbers, bytes);
  }
}

}  // namespace attendant
