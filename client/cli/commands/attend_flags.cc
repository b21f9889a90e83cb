// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/attend_flags.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/files/safetensors.h"

namespace attendant::client {
namespace {

using Positions = AttentionPositions::Kind;

// Arrays by name: those of --input, replaced by those that have a flag of their own.
class Arrays {
 public:
  absl::Status LoadInput(const std::string& path) {
    absl::StatusOr<std::map<std::string, Array>> tensors = ReadSafetensors(path);
    if (!tensors.ok()) return tensors.status();
    arrays_ = *std::move(tensors);
    return absl::OkStatus();
  }

  absl::Status Load(const std::string& name, const std::string& argument) {
    if (argument.empty()) return absl::OkStatus();
    absl::StatusOr<Array> array = LoadArray(argument, name);
    if (!array.ok()) return array.status();
    arrays_[name] = *std::move(array);
    return absl::OkStatus();
  }

  // Takes the array out.
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
    absl::StatusOr<Tensor> read = ToTensor(*std::move(array), name);
    if (!read.ok()) return read.status();
    tensor = *std::move(read);
    return absl::OkStatus();
  }

  const std::map<std::string, Array>& rest() const { return arrays_; }

 private:
  std::map<std::string, Array> arrays_;
};

// Whether every kind of number can hold it.
bool InRange(double number) { return number >= -1e15 && number <= 1e15; }

// "3,5,1", or the array of that name.
template <typename T>
absl::Status ReadList(const std::string& flag, const std::string& text, Arrays& arrays,
                      std::vector<T>& list) {
  if (!text.empty()) {
    for (absl::string_view part : absl::StrSplit(text, ',')) {
      double number = 0;
      if (!absl::SimpleAtod(part, &number) || !InRange(number)) {
        return absl::FailedPreconditionError(
            absl::StrCat("--", flag, ": '", part, "' is not a number"));
      }
      list.push_back(static_cast<T>(number));
    }
    return absl::OkStatus();
  }
  std::optional<Array> array = arrays.Take(flag);
  if (!array.has_value()) return absl::OkStatus();
  for (float value : array->values) {
    if (!InRange(value)) {
      return absl::FailedPreconditionError(absl::StrCat(flag, " has the value ", value));
    }
    list.push_back(static_cast<T>(value));
  }
  return absl::OkStatus();
}

absl::Status LoadAll(const AttendFlags& flags, Arrays& arrays) {
  if (!flags.input.empty()) {
    if (absl::Status status = arrays.LoadInput(flags.input); !status.ok()) return status;
  }
  for (const auto& [name, argument] : std::initializer_list<std::pair<std::string, std::string>>{
           {"query", flags.query},
           {"key", flags.key},
           {"value", flags.value},
           {"mask", flags.mask},
           {"key_padding_mask", flags.key_padding_mask},
           {"learned", flags.learned}}) {
    if (absl::Status status = arrays.Load(name, argument); !status.ok()) return status;
  }
  for (const std::string& parameter : flags.parameters) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(parameter, absl::MaxSplits('=', 1));
    if (parts.first.empty() || parts.second.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("--parameter cannot be '", parameter, "': give NAME=FILE"));
    }
    if (absl::Status status = arrays.Load(parts.first, parts.second); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status TakeMasks(Arrays& arrays, AttendRequest& request) {
  if (std::optional<Array> mask = arrays.Take("mask")) {
    if (mask->is_bool) {
      absl::StatusOr<BoolTensor> read = ToBoolTensor(*mask, "mask");
      if (!read.ok()) return read.status();
      request.mask = *std::move(read);
    } else {
      absl::StatusOr<Tensor> read = ToTensor(*std::move(mask), "mask");
      if (!read.ok()) return read.status();
      request.mask = *std::move(read);
    }
  }
  if (std::optional<Array> padding = arrays.Take("key_padding_mask")) {
    absl::StatusOr<BoolTensor> read = ToBoolTensor(*padding, "key_padding_mask");
    if (!read.ok()) return read.status();
    request.key_padding_mask = *std::move(read);
  }
  return absl::OkStatus();
}

// [len, dim] is a batch of one sequence, as `attendant encode --output` writes it.
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
  absl::Status status = arrays.TakeTensor("query", query);
  status.Update(arrays.TakeTensor("key", request.key));
  status.Update(arrays.TakeTensor("value", request.value));
  status.Update(arrays.TakeTensor("learned", learned));
  status.Update(TakeMasks(arrays, request));
  status.Update(ReadList("query_lengths", flags.query_lengths, arrays, request.query_lengths));
  status.Update(ReadList("key_lengths", flags.key_lengths, arrays, request.key_lengths));
  status.Update(ReadList("slopes", flags.slopes, arrays, request.positions.slopes));
  if (!status.ok()) return status;
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
  flags.Add("kind", &request.kind, "KIND", "Kind of attention; attend --list lists the kinds");
  flags.AddSwitch("causal", &request.causal, "No token attends to a later token");
  flags.Add("scale", &scale, "X", "Factor of the scores; 0 is the default of the kind");
  flags.Add("heads", &request.heads, "N", "multi_head: number of heads");
  flags.Add("window", &request.window, "N", "local: largest distance between query and key");
  flags.Add("block", &request.block, "N", "strided: block length; 0 is the root of the length");
  flags.AddChoice<LinearFeatureMap>(
      "feature_map", &request.feature_map,
      {{"elu_plus_one", LinearFeatureMap::kEluPlusOne}, {"relu", LinearFeatureMap::kRelu}},
      "linear: feature map of queries and keys");
  flags.AddChoice<WeightsOutput>("weights", &request.weights,
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
  AttendRequest made = request;
  if (scale != 0) made.scale = static_cast<float>(scale);
  Arrays arrays;
  absl::Status status = LoadAll(*this, arrays);
  if (status.ok()) status = TakeOperands(*this, arrays, made);
  if (!status.ok()) return status;
  for (const auto& [name, array] : arrays.rest()) {
    absl::StatusOr<Tensor> tensor = ToTensor(array, name);
    if (!tensor.ok()) return tensor.status();
    made.parameters.emplace(name, *std::move(tensor));
  }
  return made;
}

}  // namespace attendant::client
