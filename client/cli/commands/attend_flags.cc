// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/attend_flags.h"

#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/files/safetensors.h"
#include "client/cli/input.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using Positions = AttentionPositions::Kind;

// Arrays by name: the tensors of --input, and in their place those that a flag of their own names.
class Arrays {
 public:
  absl::Status LoadInput(const std::string& path) {
    ATTENDANT_ASSIGN_OR_RETURN(arrays_, ReadSafetensors(path));
    return absl::OkStatus();
  }

  absl::Status Load(const std::string& name, const std::string& argument) {
    if (argument.empty()) return absl::OkStatus();
    ATTENDANT_ASSIGN_OR_RETURN(arrays_[name], LoadArray(argument, name));
    return absl::OkStatus();
  }

  // Removes the array and returns it.
  std::optional<Array> Take(const std::string& name) {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) return std::nullopt;
    std::optional<Array> array = std::move(found->second);
    arrays_.erase(found);
    return array;
  }

  absl::Status TakeTensor(const std::string& name, std::optional<Tensor>& tensor) {
    std::optional<Array> array = Take(name);
    if (!array.has_value()) return absl::OkStatus();
    ATTENDANT_ASSIGN_OR_RETURN(tensor, ToTensor(*std::move(array), name));
    return absl::OkStatus();
  }

  const std::map<std::string, Array>& rest() const { return arrays_; }

 private:
  std::map<std::string, Array> arrays_;
};

// Whether int64 and float can hold the number.
bool InRange(double number) { return number >= -1e15 && number <= 1e15; }

// Whether a list of T holds the number as it is.
template <typename T>
bool Holds(double number) {
  return InRange(number) && (std::is_floating_point_v<T> || number == std::trunc(number));
}

// "3,5,1", or the array of that name.
template <typename T>
absl::Status ReadList(const std::string& flag, const std::string& text, Arrays& arrays,
                      std::vector<T>& list) {
  if (!text.empty()) {
    for (absl::string_view part : absl::StrSplit(text, ',')) {
      double number = 0;
      if (!absl::SimpleAtod(part, &number) || !Holds<T>(number)) {
        return absl::FailedPreconditionError(
            absl::StrCat("--", flag, ": '", part, "' is not a ",
                         std::is_floating_point_v<T> ? "number" : "whole number"));
      }
      list.push_back(static_cast<T>(number));
    }
    return absl::OkStatus();
  }
  std::optional<Array> array = arrays.Take(flag);
  if (!array.has_value()) return absl::OkStatus();
  for (float value : array->values) {
    if (!Holds<T>(value)) {
      return absl::FailedPreconditionError(absl::StrCat(flag, " has the value ", value));
    }
    list.push_back(static_cast<T>(value));
  }
  return absl::OkStatus();
}

absl::Status LoadAll(const AttendFlags& flags, Arrays& arrays) {
  if (!flags.input.empty()) {
    ATTENDANT_RETURN_IF_ERROR(arrays.LoadInput(flags.input));
  }
  for (const auto& [name, argument] : std::initializer_list<std::pair<std::string, std::string>>{
           {"query", flags.query},
           {"key", flags.key},
           {"value", flags.value},
           {"mask", flags.mask},
           {"key_padding_mask", flags.key_padding_mask},
           {"learned", flags.learned}}) {
    ATTENDANT_RETURN_IF_ERROR(arrays.Load(name, argument));
  }
  for (const std::string& parameter : flags.parameters) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(parameter, absl::MaxSplits('=', 1));
    if (parts.first.empty() || parts.second.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("--parameter cannot be '", parameter, "': give NAME=FILE"));
    }
    ATTENDANT_RETURN_IF_ERROR(arrays.Load(parts.first, parts.second));
  }
  return absl::OkStatus();
}

absl::Status TakeMasks(Arrays& arrays, AttendRequest& request) {
  if (std::optional<Array> mask = arrays.Take("mask")) {
    if (mask->is_bool) {
      ATTENDANT_ASSIGN_OR_RETURN(request.mask, ToBoolTensor(*mask, "mask"));
    } else {
      ATTENDANT_ASSIGN_OR_RETURN(request.mask, ToTensor(*std::move(mask), "mask"));
    }
  }
  if (std::optional<Array> padding = arrays.Take("key_padding_mask")) {
    ATTENDANT_ASSIGN_OR_RETURN(request.key_padding_mask,
                               ToBoolTensor(*padding, "key_padding_mask"));
  }
  return absl::OkStatus();
}

// Makes [len, dim], as `attendant encode --output` writes it, a batch of one sequence.
void AddBatch(AttendRequest& request) {
  constexpr size_t kSequenceRank = 2;
  if (request.query.shape.size() != kSequenceRank || !request.query_lengths.empty()) return;
  const auto add = [](Tensor& operand) {
    if (operand.shape.size() == kSequenceRank) operand.shape.insert(operand.shape.begin(), 1);
  };
  add(request.query);
  if (request.key.has_value()) add(*request.key);
  if (request.value.has_value()) add(*request.value);
}

absl::Status TakeOperands(const AttendFlags& flags, Arrays& arrays, AttendRequest& request) {
  std::optional<Tensor> query;
  std::optional<Tensor> learned;
  ATTENDANT_RETURN_IF_ERROR(arrays.TakeTensor("query", query));
  ATTENDANT_RETURN_IF_ERROR(arrays.TakeTensor("key", request.key));
  ATTENDANT_RETURN_IF_ERROR(arrays.TakeTensor("value", request.value));
  ATTENDANT_RETURN_IF_ERROR(arrays.TakeTensor("learned", learned));
  ATTENDANT_RETURN_IF_ERROR(TakeMasks(arrays, request));
  ATTENDANT_RETURN_IF_ERROR(
      ReadList("query_lengths", flags.query_lengths, arrays, request.query_lengths));
  ATTENDANT_RETURN_IF_ERROR(
      ReadList("key_lengths", flags.key_lengths, arrays, request.key_lengths));
  ATTENDANT_RETURN_IF_ERROR(ReadList("slopes", flags.slopes, arrays, request.positions.slopes));
  if (!query.has_value()) {
    return absl::FailedPreconditionError(
        "there is no query: give --query FILE, or --input FILE with a tensor of that name");
  }
  request.query = *std::move(query);
  AddBatch(request);
  if (request.positions.kind != Positions::kLearned) return absl::OkStatus();
  if (!learned.has_value()) {
    return absl::FailedPreconditionError("--positions learned needs --learned FILE");
  }
  request.positions.learned = *std::move(learned);
  return absl::OkStatus();
}

}  // namespace

void AttendFlags::AddTo(FlagParser& flags) {
  AddOperands(flags);
  AddComputation(flags);
  AddPositions(flags);
}

void AttendFlags::AddOperands(FlagParser& flags) {
  flags.Section("Tensors");
  flags.Add("input", &input, "FILE.safetensors",
            "Tensors by name: query, key, value, mask, key_padding_mask, query_lengths, "
            "key_lengths, learned, slopes, and the parameters of the kind");
  flags.Add("query", &query, "FILE", "[len, dim], [batch, len, dim] or [batch, heads, len, dim]");
  flags.Add("key", &key, "FILE", "Shaped like the query; without it, the query");
  flags.Add("value", &value, "FILE", "Shaped like the key; without it, the key");
  flags.Add("mask", &mask, "FILE",
            "Truth values, where true may attend, or numbers to add to the scores");
  flags.Add("key_padding_mask", &key_padding_mask, "FILE",
            "[batch, key_len], where true marks a key and false marks padding");
  flags.AddRepeated("parameter", &parameters, "NAME=FILE",
                    "A parameter of the kind, as query_weight=w.npy; may be given many times");
  flags.Add("query_lengths", &query_lengths, "N,N,...",
            "Lengths of ragged sequences laid end to end; query is then [sum, dim] or [sum, heads, "
            "dim]");
  flags.Add("key_lengths", &key_lengths, "N,N,...",
            "The same for key and value; without it, the lengths of the query");
}

void AttendFlags::AddComputation(FlagParser& flags) {
  flags.Section("Attention");
  flags.Add("model", &request.model, "NAME",
            "A loaded attention module; without it, --kind says what to compute");
  flags.AddChoice("kind", &request.kind,
                  {"scaled_dot_product", "flash", "multi_head", "additive", "luong_dot",
                   "luong_general", "luong_concat", "local", "strided", "linear", "linformer"},
                  "Kind of attention; attend --list explains the kinds");
  flags.AddSwitch("causal", &request.causal, "No token attends to a later token");
  flags.Add("scale", &scale, "X", "Factor of the scores; 0 is the default of the kind");
  flags.Add("heads", &request.heads, "N", "multi_head: number of heads");
  flags.Add("window", &request.window, "N", "local: largest distance between query and key");
  flags.Add("block", &request.block, "N", "strided: block length; 0 is the root of the length");
  flags.AddChoice<LinearFeatureMap>(
      "feature_map", &request.feature_map,
      {{"elu_plus_one", LinearFeatureMap::kEluPlusOne}, {"relu", LinearFeatureMap::kRelu}},
      "linear: feature map of queries and keys");
  flags.AddChoice<WeightsOutput>("weights", &request.attention_weights,
                                 {{"none", WeightsOutput::kNone},
                                  {"per_head", WeightsOutput::kPerHead},
                                  {"averaged", WeightsOutput::kAveraged}},
                                 "Attention weights to return");
  flags.AddChoice<std::optional<DType>>(
      "compute_dtype", &request.compute_dtype,
      {{"auto", std::nullopt}, {"f32", DType::kF32}, {"bf16", DType::kBf16}},
      "Number format of the computation; auto is f32, or the format of the loaded module");
  flags.AddChoice<DType>("dtype", &request.dtype,
                         {{"f32", DType::kF32}, {"bf16", DType::kBf16}, {"f16", DType::kF16}},
                         "Number format on the wire");
  flags.Add("priority", &request.priority, "N", "From -100 to 100; higher is served first");
}

void AttendFlags::AddPositions(FlagParser& flags) {
  flags.Section("Positions");
  flags.AddChoice<Positions>("positions", &request.positions.kind,
                             {{"none", Positions::kNone},
                              {"sinusoidal", Positions::kSinusoidal},
                              {"learned", Positions::kLearned},
                              {"rotary", Positions::kRotary},
                              {"alibi", Positions::kAlibi}},
                             "How positions of tokens enter the attention");
  flags.Add("position_base", &request.positions.base, "X",
            "sinusoidal, rotary: base of the wavelengths; 0 is 10000");
  flags.AddSwitch("interleaved", &request.positions.interleaved,
                  "rotary: pair neighbours, not dimension i with i + dim / 2");
  flags.AddSwitch("positions_to_value", &request.positions.to_value,
                  "sinusoidal, learned: add positions to the values too");
  flags.Add("learned", &learned, "FILE", "learned: the table, [positions, dim]");
  flags.Add("slopes", &slopes, "X,X,...",
            "alibi: a slope for each head; without it, the slopes of the paper");
}

absl::StatusOr<AttendRequest> AttendFlags::Request() const {
  ATTENDANT_RETURN_IF_ERROR(CheckFlagUtf8("model", request.model));
  AttendRequest made = request;
  if (scale != 0) made.scale = static_cast<float>(scale);
  Arrays arrays;
  ATTENDANT_RETURN_IF_ERROR(LoadAll(*this, arrays));
  ATTENDANT_RETURN_IF_ERROR(TakeOperands(*this, arrays, made));
  for (const auto& [name, array] : arrays.rest()) {
    ATTENDANT_ASSIGN_OR_RETURN(Tensor tensor, ToTensor(array, name));
    made.parameters.emplace(name, std::move(tensor));
  }
  return made;
}

}  // namespace attendant::client
