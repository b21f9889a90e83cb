// SPDX-License-Identifier: Apache-2.0
// Inputs of CallWithBytes.
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/attention.pb.h"
#include "attendant/v1/encoder.pb.h"
#include "inference/grpc_service.pb.h"
#include "kernels/core/check.h"
#include "tei/v1/tei.pb.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/server/rpc_methods.h"

namespace attendant {
namespace {

constexpr size_t kLarge = 60'000;  // of a message: fits the length before it in a stream

using Named = std::pair<std::string, std::string>;

std::string Varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

// A field with a length: a string, a message, packed numbers.
std::string Field(uint32_t number, const std::string& data) {
  return absl::StrCat(Varint(uint64_t{number} << 3 | 2), Varint(data.size()), data);
}

std::string Filled(const std::string& element, size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += element;
  return bytes;
}
std::string Full(const std::string& element) { return Filled(element, kLarge / element.size()); }

std::vector<Named> OfUnknownFields() {
  constexpr uint32_t kNobody = 2000;
  const std::string group = absl::StrCat(Varint(kNobody << 3 | 3), Varint(kNobody << 3 | 4));
  return {{"empty", ""},
          {"garbage", std::string(64, '\xff')},
          {"string", Field(1, std::string(kLarge, 'x'))},
          {"not_utf8", Field(1, "\xc3\x28")},
          {"unknown_strings", Full(Field(kNobody, ""))},
          {"unknown_numbers", Full(Varint(uint64_t{kNobody} << 3) + '\1')},
          {"unknown_groups", Full(group)}};
}

std::string InStream(const std::string& message) {
  ATTENDANT_CHECK(message.size() <= 0xffff);
  const std::string length{static_cast<char>(message.size() & 0xff),
                           static_cast<char>(message.size() >> 8)};
  return length + message;
}

class CallSeeds {
 public:
  CallSeeds(const Seeds& seeds, std::span<const FuzzedMethod> methods)
      : seeds_(seeds), methods_(methods) {
    for (const FuzzedMethod& method : methods) AddAll(Name(method), OfUnknownFields());
  }

  // `messages`, good and bad, to one method; in a stream each comes after a good one, the first.
  void AddAll(const std::string& method, const std::vector<Named>& messages) const {
    for (size_t i = 0; i < methods_.size(); ++i) {
      if (Name(methods_[i]) != method) continue;
      const std::string choice(1, static_cast<char>(i));
      for (const auto& [name, message] : messages) {
        const std::string bytes =
            methods_[i].stream
                ? InStream(messages[0].second) + InStream(message) + InStream(messages[0].second)
                : message;
        seeds_.Add(absl::StrCat(method, "_", name), choice + bytes);
      }
      return;
    }
    ATTENDANT_CHECK(false);
  }

 private:
  static std::string Name(const FuzzedMethod& method) {
    const std::string path = method.path;
    return path.substr(path.rfind('/') + 1);
  }

  const Seeds& seeds_;
  const std::span<const FuzzedMethod> methods_;
};

v1::EncodeRequest GoodEncode() {
  v1::EncodeRequest request;
  request.set_model("tiny");
  request.set_id("seven");
  request.mutable_sequences()->add_sequences()->set_text("hello world");
  request.mutable_outputs()->set_last_hidden_state(true);
  request.mutable_outputs()->mutable_attention_weights();
  return request;
}

std::vector<Named> Encodes() {
  const auto sequences = [](const std::string& all) {
    return absl::StrCat(Field(1, "tiny"), Field(3, all));
  };
  const auto ids = [&](const std::string& fields) { return sequences(Field(1, Field(2, fields))); };
  const std::string one_token = Field(1, Field(2, Field(1, "\5")));
  return {{"good", GoodEncode().SerializeAsString()},
          {"empty_sequences", sequences(Full(Field(1, "")))},
          {"empty_texts", sequences(Full(Field(1, Field(1, ""))))},
          {"empty_ids", sequences(Full(Field(1, Field(2, ""))))},
          {"text_and_ids", sequences(Field(1, Full(Field(1, "") + Field(2, ""))))},
          {"packed_ids", ids(Field(1, Full("\5")))},
          {"single_ids", ids(Full("\x08\5"))},
          {"masks", ids(Field(1, Filled("\5", 20000)) + Field(3, Filled("\1", 20000)))},
          {"layers", Field(1, "tiny") + Field(5, Field(6, Full("\1")))},
          {"text", sequences(Field(1, Field(1, Full("a "))))},
          {"id", Field(2, Full("x"))},
          {"one_token", sequences(Filled(one_token, 4096))}};
}

v1::Tensor Halves(const std::vector<int64_t>& shape) {
  v1::Tensor tensor;
  tensor.set_dtype(v1::DTYPE_F16);
  size_t bytes = 2;
  for (const int64_t dim : shape) {
    tensor.add_shape(dim);
    bytes *= static_cast<size_t>(dim);
  }
  tensor.set_data(std::string(bytes, ' '));
  return tensor;
}

std::vector<Named> Attends() {
  v1::AttendRequest good;
  good.set_id("seven");
  *good.mutable_query() = Halves({1, 2, 3, 4});
  good.set_weights(v1::ATTENTION_WEIGHTS_PER_HEAD);
  v1::AttendRequest one_token;
  *one_token.mutable_query() = Halves({15000, 1});
  for (int i = 0; i < 15000; ++i) one_token.add_query_lengths(1);
  v1::AttendRequest long_one;
  *long_one.mutable_query() = Halves({1, 7000, 4});
  v1::AttendRequest weights = long_one;
  weights.set_weights(v1::ATTENTION_WEIGHTS_PER_HEAD);
  v1::AttendRequest masked;
  *masked.mutable_query() = Halves({1, 16, 1500, 1});
  masked.mutable_local()->set_window(0);
  masked.mutable_alibi();
  masked.mutable_mask()->set_dtype(v1::DTYPE_BOOL);
  for (int i = 0; i < 2; ++i) masked.mutable_mask()->add_shape(1);
  masked.mutable_mask()->set_data("\1");
  std::string kinds, tensors;
  for (uint32_t kind = 9; kind <= 16; ++kind) kinds += Field(kind, "");
  for (uint32_t weight = 2; weight < 10; ++weight) tensors += Field(weight, "");
  v1::AttendRequest one;
  *one.mutable_query() = Halves({1, 1, 1});
  const std::string query = one.SerializeAsString();
  return {{"good", good.SerializeAsString()},
          {"one_token", one_token.SerializeAsString()},
          {"long", long_one.SerializeAsString()},
          {"weights", weights.SerializeAsString()},
          {"masked", masked.SerializeAsString()},
          {"shape", Field(4, Field(2, Full("\1")))},
          {"lengths", query + Field(7, Full("\1"))},
          {"slopes", query + Field(26, Field(1, std::string(kLarge, '\0')))},
          {"kinds", Full(kinds)},
          {"tensors", Field(10, Full(tensors))},
          {"id", Field(2, Full("x"))}};
}

inference::ModelInferRequest GoodInfer() {
  inference::ModelInferRequest request;
  request.set_model_name("tiny.ids");
  request.set_id("seven");
  auto& input = *request.add_inputs();
  input.set_name("input_ids");
  input.set_datatype("INT32");
  input.add_shape(1);
  input.add_shape(2);
  for (const int id : {4, 5}) input.mutable_contents()->add_int_contents(id);
  return request;
}

std::vector<Named> Infers() {
  const std::string model = Field(1, "tiny.ids");
  inference::ModelInferRequest rows = GoodInfer();
  rows.mutable_inputs(0)->set_shape(0, 4096);
  rows.mutable_inputs(0)->set_shape(1, 1);
  rows.mutable_inputs(0)->clear_contents();
  rows.add_raw_input_contents(Filled(std::string("\5\0\0\0", 4), 4096));
  std::vector<Named> all = {{"good", GoodInfer().SerializeAsString()},
                            {"rows", rows.SerializeAsString()},
                            {"id", Field(3, Full("x"))},
                            {"shape", model + Field(5, Field(3, Full("\1")))},
                            {"bytes", model + Field(5, Field(5, Full(Field(8, ""))))},
                            {"floats", model + Field(5, Field(5, Field(6, Full("1234"))))},
                            {"input_parameters", model + Field(5, Full(Field(4, "")))}};
  for (const uint32_t field : {4u, 5u, 6u, 7u}) {
    all.emplace_back(absl::StrCat("empty_", field), model + Full(Field(field, "")));
  }
  for (const uint32_t field : {1u, 2u, 3u, 4u, 5u}) {
    all.emplace_back(absl::StrCat("packed_", field),
                     model + Field(5, Field(5, Field(field, Full("\1")))));
  }
  return all;
}

// Of TEI's requests: their text first, as most have it.
template <typename Request>
std::vector<Named> OfOneText() {
  Request good;
  good.set_inputs("hello world");
  return {{"good", good.SerializeAsString()}, {"text", Field(1, Full("a "))}};
}

std::vector<Named> Reranks() {
  tei::v1::RerankRequest good;
  good.set_query("hello");
  for (const char* text : {"world", "hello"}) good.add_texts(text);
  good.set_return_text(true);
  return {{"good", good.SerializeAsString()},
          {"query", Field(1, Full("a ")) + Field(2, "world")},
          {"empty_texts", Field(1, "hello") + Full(Field(2, ""))}};
}

std::vector<Named> Decodes() {
  tei::v1::DecodeRequest good;
  for (const uint32_t id : {2u, 4u, 5u, 3u}) good.add_ids(id);
  return {{"good", good.SerializeAsString()},
          {"ids", Field(1, Full("\5"))},
          {"single_ids", Full("\x08\5")}};
}

}  // namespace

void EncoderCallSeeds(const Seeds& seeds) {
  const CallSeeds calls(seeds, kFuzzedEncoder);
  calls.AddAll("Encode", Encodes());
  calls.AddAll("EncodeStream", Encodes());
  calls.AddAll("Check", {{"tiny", Field(1, "tiny")}});
}

void AttentionCallSeeds(const Seeds& seeds) {
  const CallSeeds calls(seeds, kFuzzedAttention);
  calls.AddAll("Attend", Attends());
  calls.AddAll("AttendStream", Attends());
}

void KServeCallSeeds(const Seeds& seeds) {
  const CallSeeds calls(seeds, kFuzzedKServe);
  calls.AddAll("ModelInfer", Infers());
  calls.AddAll("ModelStreamInfer", Infers());
  for (const char* method : {"ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"}) {
    calls.AddAll(method, {{"tiny", Field(1, "tiny.ids")}});
  }
  for (const char* method : {"RepositoryModelLoad", "RepositoryModelUnload"}) {
    calls.AddAll(method, {{"tiny", Field(2, "tiny")}});
  }
}

void TeiCallSeeds(const Seeds& seeds) {
  const CallSeeds calls(seeds, kFuzzedTei);
  for (const char* end : {"", "Stream"}) {
    const auto add = [&](const char* method, const std::vector<Named>& messages) {
      calls.AddAll(absl::StrCat(method, end), messages);
    };
    for (const char* method : {"Embed", "EmbedSparse", "EmbedAll"}) {
      add(method, OfOneText<tei::v1::EmbedRequest>());
    }
    add("Predict", OfOneText<tei::v1::PredictRequest>());
    add("PredictPair", {{"texts", Full(Field(1, ""))}});
    add("Tokenize", OfOneText<tei::v1::EncodeRequest>());
    add("Decode", Decodes());
  }
  calls.AddAll("Rerank", Reranks());
  calls.AddAll("RerankStream",
               {{"good", Field(1, "hello") + Field(2, "world")}, {"text", Field(2, Full("a "))}});
}

}  // namespace attendant
