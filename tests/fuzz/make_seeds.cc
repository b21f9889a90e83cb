// SPDX-License-Identifier: Apache-2.0
// Writes the inputs that fuzzing begins with: FOLDER/HARNESS_seeds/NAME.
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/attention.pb.h"
#include "attendant/v1/encoder.pb.h"
#include "client/cli/files/npy.h"
#include "inference/grpc_service.pb.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/check.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/seeds.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

// ---- attendant.v1 ----

v1::Tensor Tensor(const std::vector<int64_t>& shape, v1::DType dtype = v1::DTYPE_F32) {
  v1::Tensor tensor;
  tensor.set_dtype(dtype);
  int64_t bytes = dtype == v1::DTYPE_F32 ? 4 : dtype == v1::DTYPE_BOOL ? 1 : 2;
  for (int64_t dim : shape) {
    tensor.add_shape(dim);
    bytes *= dim;
  }
  for (int64_t i = 0; i < bytes; ++i) {
    tensor.mutable_data()->push_back(dtype == v1::DTYPE_BOOL ? static_cast<char>(i % 2) : ' ');
  }
  return tensor;
}

// [1, 2, 3, 4] over [1, 2, 5, 4]
v1::AttendRequest WithHeads() {
  v1::AttendRequest request;
  *request.mutable_query() = Tensor({1, 2, 3, 4});
  *request.mutable_key() = Tensor({1, 2, 5, 4});
  *request.mutable_value() = Tensor({1, 2, 5, 3}, v1::DTYPE_BF16);
  return request;
}

v1::AttendRequest Ragged() {
  v1::AttendRequest request;
  *request.mutable_query() = Tensor({4, 2}, v1::DTYPE_F16);
  for (int64_t length : {1, 3}) request.add_query_lengths(length);
  return request;
}

void MaskedSeeds(const Seeds& seeds) {
  v1::AttendRequest request = WithHeads();
  *request.mutable_mask() = Tensor({1, 1, 3, 5}, v1::DTYPE_BOOL);
  *request.mutable_key_padding_mask() = Tensor({1, 5}, v1::DTYPE_BOOL);
  request.set_weights(v1::ATTENTION_WEIGHTS_PER_HEAD);
  request.mutable_added()->mutable_sinusoidal();
  seeds.Add("masks", request.SerializeAsString());
  *request.mutable_mask() = Tensor({3, 5}, v1::DTYPE_BF16);
  request.set_compute_dtype(v1::DTYPE_BF16);
  request.mutable_alibi();
  seeds.Add("alibi", request.SerializeAsString());
  *request.mutable_mask() = Tensor({3, 5});
  request.mutable_rotary()->set_interleaved(true);
  request.set_scale(0.5f);
  request.set_causal(true);
  seeds.Add("rotary", request.SerializeAsString());
  request = Ragged();
  *request.mutable_added()->mutable_learned() = Tensor({3, 2});
  request.mutable_added()->set_to_value(true);
  seeds.Add("learned", request.SerializeAsString());
}

void KindSeeds(const Seeds& seeds) {
  v1::AttendRequest request = WithHeads();
  seeds.Add("flash", request.SerializeAsString());
  request.mutable_scaled_dot_product()->set_algorithm(v1::ATTENTION_ALGORITHM_SCORES);
  request.set_weights(v1::ATTENTION_WEIGHTS_AVERAGED);
  request.set_dtype(v1::DTYPE_F16);
  seeds.Add("scores", request.SerializeAsString());
  v1::AdditiveAttention& additive = *request.mutable_additive();
  for (v1::Tensor* weight : {additive.mutable_query_weight(), additive.mutable_key_weight()}) {
    *weight = Tensor({2, 4});
  }
  *additive.mutable_score_weight() = Tensor({2});
  *additive.mutable_bias() = Tensor({2});
  seeds.Add("additive", request.SerializeAsString());
  request.mutable_luong()->set_score(v1::LUONG_SCORE_CONCAT);
  *request.mutable_luong()->mutable_weight() = Tensor({2, 8});
  *request.mutable_luong()->mutable_score_weight() = Tensor({2});
  seeds.Add("luong", request.SerializeAsString());
  request.mutable_local()->set_window(1);
  seeds.Add("local", request.SerializeAsString());
  request.mutable_strided()->set_block(2);
  seeds.Add("strided", request.SerializeAsString());
  request.mutable_linear()->set_feature_map(v1::FEATURE_MAP_RELU);
  seeds.Add("linear", request.SerializeAsString());
  *request.mutable_linformer()->mutable_key_projection() = Tensor({2, 5});
  seeds.Add("linformer", request.SerializeAsString());
  seeds.Add("ragged", Ragged().SerializeAsString());
}

void ModuleRequestSeeds(const Seeds& seeds) {
  v1::AttendRequest request = Ragged();
  v1::MultiHeadAttention& multi_head = *request.mutable_multi_head();
  multi_head.set_heads(2);
  for (v1::Tensor* weight :
       {multi_head.mutable_query_weight(), multi_head.mutable_key_weight(),
        multi_head.mutable_value_weight(), multi_head.mutable_output_weight()}) {
    *weight = Tensor({2, 2});
  }
  *multi_head.mutable_query_bias() = Tensor({2});
  seeds.Add("multi_head", request.SerializeAsString());
  request = {};
  request.set_model("mha_cross");
  *request.mutable_query() = Tensor({1, 2, 24});
  *request.mutable_key() = Tensor({1, 3, 10});
  *request.mutable_value() = Tensor({1, 3, 14});
  seeds.Add("module", request.SerializeAsString());
  request = {};
  request.set_model("encoder_pre_norm");
  *request.mutable_query() = Tensor({5, 16});
  for (int64_t length : {2, 3}) request.add_query_lengths(length);
  seeds.Add("encoder", request.SerializeAsString());
}

void EncodeSeeds(const Seeds& seeds) {
  v1::EncodeRequest request;
  v1::TokenIds& ids = *request.mutable_sequences()->add_sequences()->mutable_ids();
  for (int32_t id : {2, 4, 3}) ids.add_token_ids(id);
  for (bool mask : {true, false, true}) ids.add_attention_mask(mask);
  request.mutable_sequences()->add_sequences()->set_text("Hello, wörld! 你好");
  v1::OutputSelection& outputs = *request.mutable_outputs();
  outputs.set_last_hidden_state(true);
  outputs.mutable_attention_weights()->add_layers(1);
  outputs.mutable_attention_weights()->add_heads(0);
  outputs.add_hidden_layers(2);
  outputs.set_token_strings(true);
  seeds.Add("sequences", request.SerializeAsString());
  v1::PaddedBatch& padded = *request.mutable_padded();
  padded.set_batch(2);
  padded.set_seq(2);
  for (int32_t id : {4, 5, 4, 0}) padded.add_token_ids(id);
  for (bool mask : {true, true, true, false}) padded.add_attention_mask(mask);
  outputs.mutable_pooled()->set_dims(8);
  request.set_truncation(v1::TRUNCATION_RIGHT);
  seeds.Add("padded", request.SerializeAsString());
  request = {};
  request.mutable_sequences()->add_sequences()->set_text("hello world hello");
  request.mutable_outputs()->mutable_pooled()->set_chunk_tokens(2);
  v1::Sequence& spans = *request.mutable_sequences()->add_sequences();
  spans.set_text("hello world");
  for (int32_t begin : {0, 2}) {
    spans.mutable_spans()->add_begins(begin);
    spans.mutable_spans()->add_ends(begin + 2);
  }
  seeds.Add("spans", request.SerializeAsString());
  request.mutable_outputs()->mutable_word_weights();
  seeds.Add("words", request.SerializeAsString());
}

// A byte that says of which type they are comes before the bytes of a message.
void WireSeeds(const Seeds& seeds) {
  v1::EncodeRequest encode;
  encode.set_id("id");
  v1::TokenIds& ids = *encode.mutable_sequences()->add_sequences()->mutable_ids();
  for (int32_t id : {2, 300, -1}) ids.add_token_ids(id);
  encode.mutable_sequences()->add_sequences()->set_text("Hello");
  encode.mutable_outputs()->add_hidden_layers(2);
  seeds.Add("encode", "\1" + encode.SerializeAsString());
  inference::ModelInferRequest infer;
  infer.set_model_name("tiny.ids");
  auto& input = *infer.add_inputs();
  input.set_name("input_ids");
  input.add_shape(1);
  input.mutable_contents()->add_int64_contents(300);
  input.mutable_contents()->add_fp32_contents(1);
  input.mutable_contents()->add_bytes_contents("text");
  (*infer.mutable_parameters())["priority"].set_int64_param(3);
  infer.add_outputs();
  infer.add_raw_input_contents("raw");
  seeds.Add("infer", "\2" + infer.SerializeAsString());
  v1::AttendRequest attend = Ragged();
  attend.mutable_alibi()->add_slopes(0.5f);
  attend.set_scale(2);
  seeds.Add("attend", std::string(1, '\0') + attend.SerializeAsString());
}

// ---- Files ----

TestTensor Zeros(const std::string& name, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return FloatTensor(name, dims, std::vector<float>(static_cast<size_t>(count), 0.5f));
}

void ModuleSeeds(const Seeds& seeds) {
  const auto add = [&](const std::string& name, const std::string& config,
                       const std::vector<TestTensor>& tensors) {
    seeds.Add(name, config + std::string(1, '\0') + SafetensorsBytes(tensors));
  };
  const auto multi_head = [](const std::string& path) -> std::vector<TestTensor> {
    return {Zeros(path + "in_proj_weight", {6, 2}), Zeros(path + "in_proj_bias", {6}),
            Zeros(path + "out_proj.weight", {2, 2}), Zeros(path + "out_proj.bias", {2})};
  };
  add("multi_head", R"({"type": "MultiheadAttention", "embed_dim": 2, "num_heads": 1})",
      multi_head(""));
  add("separate", R"({"type": "MultiheadAttention", "num_heads": 2, "kdim": 3})",
      {Zeros("q_proj_weight", {2, 2}), Zeros("k_proj_weight", {2, 3}),
       Zeros("v_proj_weight", {2, 2}), Zeros("out_proj.weight", {2, 2})});
  std::vector<TestTensor> layer = multi_head("layers.0.self_attn.");
  for (const char* norm : {"norm1", "norm2"}) {
    for (const char* part : {".weight", ".bias"}) {
      layer.push_back(Zeros(absl::StrCat("layers.0.", norm, part), {2}));
    }
  }
  layer.push_back(Zeros("layers.0.linear1.weight", {3, 2}));
  layer.push_back(Zeros("layers.0.linear2.weight", {2, 3}));
  layer.push_back(Zeros("norm.weight", {2}));
  add("encoder",
      R"({"type": "TransformerEncoder", "nhead": 1, "activation": "gelu", "layer_norm_eps": 1e-5})",
      layer);
}

void ArraySeeds(const Seeds& seeds) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  ATTENDANT_CHECK(client::WriteNpy(seeds.path("c_order"), {2, 3}, values).ok());
  const auto npy = [&](const std::string& name, const std::string& header,
                       const std::string& data) {
    const std::string size{static_cast<char>(header.size()), '\0'};
    seeds.Add(name, absl::StrCat("\x93NUMPY\x01", std::string(1, '\0'), size, header, data));
  };
  npy("fortran", "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 1, 2), }\n",
      std::string(8, '\1'));
  npy("bool", "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n",
      std::string("\0\1\0", 3));
  npy("scalar", "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", std::string(8, '?'));
  seeds.Add("safetensors",
            SafetensorsBytes({Zeros("query", {1, 2}),
                              {.name = "mask", .dtype = "BOOL", .dims = {2}, .data = {1, 0}}}));
}

void TokenizerSeeds(const Seeds& seeds) {
  const std::string zero(1, '\0');
  for (const auto& [name, text] : {std::pair{"words", "Hello, world! helloworld"},
                                   std::pair{"accents", "Wörld \u00e9\u0301 \u4f60\u597d"},
                                   std::pair{"special", "[CLS] hello [SEP][MASK]"}}) {
    seeds.Add(name, text + zero + TinyTokenizer(1));
  }
  // Of every kind of model, normalizer and pre-tokenizer.
  const std::string families = "tests/golden/tokenizer/families/";
  std::ifstream file(families + "ids.json");
  const auto ids = nlohmann::json::parse(file);
  for (const auto& family : ids.items()) {
    const absl::StatusOr<std::string> bytes =
        ReadTextFile(absl::StrCat(families, family.key(), ".json"), 1 << 20);
    ATTENDANT_CHECK(bytes.ok());
    seeds.Add(family.key(), "Hello w\u00f6rld! don't 12.5 \u4f60\u597d" + zero + *bytes);
  }
}

void SentencePieceSeeds(const Seeds& seeds) {
  const std::string folder = "tests/golden/tokenizer/sentencepiece/";
  int family = 0;
  for (const char* model :
       {"xlm_roberta/sentencepiece.bpe.model", "camembert/sentencepiece.bpe.model",
        "t5/spiece.model", "deberta_v2/spm.model"}) {
    const absl::StatusOr<std::string> bytes = ReadTextFile(folder + model, 1 << 20);
    ATTENDANT_CHECK(bytes.ok());
    const std::string number(1, static_cast<char>('0' + family++));
    seeds.Add(std::string(model).substr(0, 2),
              number + "Hello w\u00f6rld </s>" + std::string(1, '\0') + *bytes);
  }
}

// What transformers renders, and what is refused because it depends on a text that is not known.
void ChatTemplateSeeds(const Seeds& seeds) {
  std::ifstream file("tests/golden/chat/templates.json");
  const auto golden = nlohmann::json::parse(file);
  int number = 0;
  for (const nlohmann::json& one : golden["cases"]) {
    seeds.Add(absl::StrCat(number++), one["template"].get<std::string>());
  }
  seeds.Add("truth", "{% if messages[0].content %}a{% endif %}");
  seeds.Add("equal", "{{ messages[0].content == messages[1].content }}");
  seeds.Add("trim", "{{ messages[0].content | trim }}");
}

}  // namespace

void WriteSeeds(const std::string& folder) {
  const Seeds attend(folder, "attend");
  KindSeeds(attend);
  MaskedSeeds(attend);
  ModuleRequestSeeds(attend);
  EncodeSeeds(Seeds(folder, "encode"));
  WireSeeds(Seeds(folder, "wire"));
  ModuleSeeds(Seeds(folder, "module"));
  ArraySeeds(Seeds(folder, "array"));
  TokenizerSeeds(Seeds(folder, "tokenizer"));
  SentencePieceSeeds(Seeds(folder, "sentencepiece"));
  ChatTemplateSeeds(Seeds(folder, "chat_template"));
  EncoderCallSeeds(Seeds(folder, "encoder_rpc"));
  AttentionCallSeeds(Seeds(folder, "attention_rpc"));
  KServeCallSeeds(Seeds(folder, "kserve_rpc"));
  TeiCallSeeds(Seeds(folder, "tei_rpc"));
  HttpSeeds(Seeds(folder, "http"));
  FolderSeeds(Seeds(folder, "folder"));
}

}  // namespace attendant

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  attendant::WriteSeeds(argv[1]);
}
