// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/input_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/protocols/kserve/served.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

KServeModelInfo Served(const std::string& suffix) {
  return ServedModel(suffix, {.hidden = 2, .embedding_dims = 2, .max_sequence_tokens = 8});
}

template <typename T>
std::string Raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string RawBytes(const std::vector<std::string>& elements) {
  std::string raw;
  for (const std::string& element : elements) {
    raw += Raw<uint32_t>({static_cast<uint32_t>(element.size())}) + element;
  }
  return raw;
}

inference::ModelInferRequest::InferInputTensor& AddInput(inference::ModelInferRequest& request,
                                                         const std::string& name,
                                                         const std::string& datatype,
                                                         const std::vector<int64_t>& shape) {
  auto& input = *request.add_inputs();
  input.set_name(name);
  input.set_datatype(datatype);
  input.mutable_shape()->Add(shape.begin(), shape.end());
  return input;
}

void AddRaw(inference::ModelInferRequest& request, const std::string& name,
            const std::string& datatype, const std::vector<int64_t>& shape, std::string raw) {
  AddInput(request, name, datatype, shape);
  request.add_raw_input_contents(std::move(raw));
}

// [2, 3] ids, the second row padded to one token.
inference::ModelInferRequest IdsRequest() {
  inference::ModelInferRequest request;
  AddRaw(request, "input_ids", "INT64", {2, 3}, Raw<int64_t>({1, 2, 3, 4, 0, 0}));
  AddRaw(request, "attention_mask", "INT64", {2, 3}, Raw<int64_t>({1, 1, 1, 1, 0, 0}));
  return request;
}

const IdsInput& Ids(const InferInputs& inputs, size_t index) {
  return std::get<IdsInput>(inputs.sequences[index]);
}

InferInputs Decoded(const inference::ModelInferRequest& request, const std::string& suffix) {
  absl::StatusOr<InferInputs> inputs = InputsFromProto(request, Served(suffix));
  EXPECT_TRUE(inputs.ok()) << inputs.status();
  return inputs.ok() ? *std::move(inputs) : InferInputs{};
}

void ExpectRefused(const inference::ModelInferRequest& request, const std::string& suffix,
                   const std::string& message) {
  const absl::Status status = InputsFromProto(request, Served(suffix)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status << "\n" << request.ShortDebugString();
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(TextInput, RawElementsOfAnyBytes) {
  const std::vector<std::string> texts = {"", std::string("a\0b", 3), "\xff\xfe"};
  inference::ModelInferRequest request;
  AddRaw(request, "text", "BYTES", {3, 1}, RawBytes(texts));
  const InferInputs inputs = Decoded(request, "");
  ASSERT_EQ(inputs.sequences.size(), 3u);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(std::get<std::string>(inputs.sequences[i]), texts[i]);
  }
}

TEST(TextInput, TypedElements) {
  inference::ModelInferRequest request;
  auto& input = AddInput(request, "text", "BYTES", {2, 1});
  input.mutable_contents()->add_bytes_contents("one");
  input.mutable_contents()->add_bytes_contents("two");
  const InferInputs inputs = Decoded(request, "");
  ASSERT_EQ(inputs.sequences.size(), 2u);
  EXPECT_EQ(std::get<std::string>(inputs.sequences[1]), "two");
}

TEST(TextInput, TypedPairsAsManyAsABatch) {
  const auto pairs = [](int64_t batch) {
    inference::ModelInferRequest request;
    auto& input = AddInput(request, "text", "BYTES", {batch, 2});
    for (int64_t i = 0; i < 2 * batch; ++i) {
      input.mutable_contents()->add_bytes_contents(absl::StrCat(i));
    }
    return request;
  };
  const InferInputs inputs = Decoded(pairs(4), ".scores");
  ASSERT_EQ(inputs.sequences.size(), 4u);
  EXPECT_EQ(std::get<TextPair>(inputs.sequences[3]).second, "7");
  ExpectRefused(pairs(5), ".scores", "has batch size 5, the limit is 4");
}

TEST(TextInput, LyingRawContentsAreRefused) {
  struct Case {
    int64_t batch;
    std::string raw;
    std::string message;
  };
  const std::string one = RawBytes({"one"});
  for (const Case& c :
       {Case{1, "", "ends inside element 0 of 1"}, Case{1, "abc", "ends inside element 0"},
        Case{2, one, "ends inside element 1 of 2"},
        Case{1, one.substr(0, one.size() - 1), "ends inside element 0"},
        Case{1, one + "x", "1 bytes after its 1 elements"},
        Case{1, Raw<uint32_t>({0xffffffffu}), "ends inside element 0"}}) {
    inference::ModelInferRequest request;
    AddRaw(request, "text", "BYTES", {c.batch, 1}, c.raw);
    ExpectRefused(request, "", c.message);
  }
}

TEST(TextInput, OtherShapesAndTypesAreRefused) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {1}, {1, 2}, {1, 1, 1}, {0, 1}, {-1, 1}, {5, 1}, {kMaxInt64, 1}}) {
    inference::ModelInferRequest request;
    AddRaw(request, "text", "BYTES", shape, RawBytes({"one"}));
    ExpectRefused(request, "", "input 'text' has");
  }
  inference::ModelInferRequest request;
  AddRaw(request, "text", "INT64", {1, 1}, Raw<int64_t>({1}));
  ExpectRefused(request, "", "datatype 'INT64', expected BYTES");
}

TEST(IdsInputs, RowsMaskAndSegments) {
  inference::ModelInferRequest request = IdsRequest();
  AddRaw(request, "token_type_ids", "INT64", {2, 3}, Raw<int64_t>({0, 0, 1, 0, 0, 0}));
  const InferInputs inputs = Decoded(request, ".ids");
  EXPECT_EQ(inputs.seq, 3);
  ASSERT_EQ(inputs.sequences.size(), 2u);
  EXPECT_THAT(Ids(inputs, 0).token_ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids(inputs, 0).segment_ids, ElementsAre(0, 0, 1));
  EXPECT_THAT(Ids(inputs, 0).attention_mask, ElementsAre(1, 1, 1));
  EXPECT_THAT(Ids(inputs, 1).token_ids, ElementsAre(4, 0, 0));
  EXPECT_THAT(Ids(inputs, 1).attention_mask, ElementsAre(1, 0, 0));
}

TEST(IdsInputs, OptionalOnesMayBeMissingAndOrderIsFree) {
  inference::ModelInferRequest request;
  AddRaw(request, "token_type_ids", "INT64", {1, 2}, Raw<int64_t>({0, 1}));
  AddRaw(request, "input_ids", "INT64", {1, 2}, Raw<int64_t>({5, 6}));
  const InferInputs inputs = Decoded(request, ".encoder");
  ASSERT_EQ(inputs.sequences.size(), 1u);
  EXPECT_THAT(Ids(inputs, 0).token_ids, ElementsAre(5, 6));
  EXPECT_THAT(Ids(inputs, 0).segment_ids, ElementsAre(0, 1));
  EXPECT_THAT(Ids(inputs, 0).attention_mask, IsEmpty());
}

TEST(IdsInputs, NarrowAndTypedFormsGiveTheSame) {
  inference::ModelInferRequest raw32;
  AddRaw(raw32, "input_ids", "INT32", {2, 2}, Raw<int32_t>({1, -2, 3, 4}));
  inference::ModelInferRequest typed32;
  auto& ids32 = AddInput(typed32, "input_ids", "INT32", {2, 2});
  inference::ModelInferRequest typed64;
  auto& ids64 = AddInput(typed64, "input_ids", "INT64", {2, 2});
  for (const int value : {1, -2, 3, 4}) {
    ids32.mutable_contents()->add_int_contents(value);
    ids64.mutable_contents()->add_int64_contents(value);
  }
  for (const auto& request : {raw32, typed32, typed64}) {
    const InferInputs inputs = Decoded(request, ".ids");
    ASSERT_EQ(inputs.sequences.size(), 2u);
    EXPECT_THAT(Ids(inputs, 0).token_ids, ElementsAre(1, -2));
    EXPECT_THAT(Ids(inputs, 1).token_ids, ElementsAre(3, 4));
  }
}

TEST(IdsInputs, IdsOutsideThirtyTwoBitsStayWhole) {
  inference::ModelInferRequest request;
  AddRaw(request, "input_ids", "INT64", {1, 2}, Raw<int64_t>({kMaxInt64, int64_t{1} << 32}));
  EXPECT_THAT(Ids(Decoded(request, ".ids"), 0).token_ids, ElementsAre(kMaxInt64, int64_t{1} << 32));
}

TEST(IdsInputs, HostileShapesAreRefused) {
  struct Case {
    std::vector<int64_t> shape;
    std::string message;
  };
  for (const Case& c :
       {Case{{}, "0 dimensions"}, Case{{6}, "1 dimensions"}, Case{{1, 2, 3}, "3 dimensions"},
        Case{std::vector<int64_t>(100000, 1), "100000 dimensions"}, Case{{0, 3}, "minimum is 1"},
        Case{{2, 0}, "minimum is 1"}, Case{{kMaxInt64, 0}, "minimum is 1"},
        Case{{-2, -3}, "minimum is 1"}, Case{{5, 3}, "batch size 5, the limit is 4"},
        Case{{2, 9}, "length 9, the limit is 8"}, Case{{kMaxInt64, kMaxInt64}, "batch size"},
        Case{{1, kMaxInt64}, "length"}, Case{{int64_t{1} << 32, int64_t{1} << 32}, "batch size"},
        Case{{2, 4}, "has 48 bytes of raw contents, its shape has 64"}}) {
    inference::ModelInferRequest request = IdsRequest();
    request.mutable_inputs(0)->mutable_shape()->Assign(c.shape.begin(), c.shape.end());
    ExpectRefused(request, ".ids", c.message);
  }
}

// Each turns a good request into a bad one.
struct Breakage {
  std::string message;
  std::function<void(inference::ModelInferRequest&)> apply;
};

TEST(IdsInputs, RequestsThatContradictThemselvesAreRefused) {
  using Request = inference::ModelInferRequest;
  const std::vector<Breakage> breakages = {
      {"is unknown", [](Request& r) { r.mutable_inputs(1)->set_name("mask"); }},
      {"given twice", [](Request& r) { r.mutable_inputs(1)->set_name("input_ids"); }},
      {"'input_ids' is missing",
       [](Request& r) { r.mutable_inputs(0)->set_name("token_type_ids"); }},
      {"'input_ids' is missing", [](Request& r) { r.Clear(); }},
      {"datatype 'FP32', expected INT64",
       [](Request& r) { r.mutable_inputs(0)->set_datatype("FP32"); }},
      {"datatype ''", [](Request& r) { r.mutable_inputs(0)->clear_datatype(); }},
      {"has 48 bytes of raw contents, its shape has 24",
       [](Request& r) { r.mutable_inputs(0)->set_datatype("INT32"); }},
      {"has shape [3, 2], but 'input_ids' has [2, 3]",
       [](Request& r) {
         r.mutable_inputs(1)->set_shape(0, 3);
         r.mutable_inputs(1)->set_shape(1, 2);
       }},
      {"has shape [1, 3], but 'input_ids' has [2, 3]",  // rows that it lacks must not be read
       [](Request& r) {
         r.mutable_inputs(1)->set_shape(0, 1);
         *r.mutable_raw_input_contents(1) = Raw<int64_t>({1, 1, 1});
       }},
      {"has shape [2, 2], but 'input_ids' has [2, 3]",
       [](Request& r) {
         r.mutable_inputs(1)->set_shape(1, 2);
         *r.mutable_raw_input_contents(1) = Raw<int64_t>({1, 1, 1, 1});
       }},
      {"has 47 bytes", [](Request& r) { r.mutable_raw_input_contents(0)->pop_back(); }},
      {"has 0 bytes", [](Request& r) { r.mutable_raw_input_contents(1)->clear(); }},
      {"1 entries for 2 inputs", [](Request& r) { r.mutable_raw_input_contents()->RemoveLast(); }},
      {"3 entries for 2 inputs", [](Request& r) { r.add_raw_input_contents("x"); }},
      {"0 values in int64_contents", [](Request& r) { r.clear_raw_input_contents(); }},
      {"beside raw_input_contents",
       [](Request& r) { r.mutable_inputs(1)->mutable_contents()->add_int64_contents(1); }},
      {"has 2 at [1, 0], it must be 0 or 1",
       [](Request& r) {
         *r.mutable_raw_input_contents(1) = Raw<int64_t>({1, 1, 1, 2, 0, 0});
       }},
  };
  for (const Breakage& breakage : breakages) {
    inference::ModelInferRequest request = IdsRequest();
    breakage.apply(request);
    ExpectRefused(request, ".ids", breakage.message);
  }
}

TEST(IdsInputs, RawBesideTypedIsRefused) {
  inference::ModelInferRequest request;
  AddRaw(request, "input_ids", "INT64", {1, 1}, Raw<int64_t>({5}));
  auto& mask = AddInput(request, "attention_mask", "INT64", {1, 1});
  mask.mutable_contents()->add_int64_contents(1);
  ExpectRefused(request, ".ids", "1 entries for 2 inputs");
}

TEST(IdsInputs, TypedContentsInTheWrongFieldAreRefused) {
  inference::ModelInferRequest request;
  auto& input = AddInput(request, "input_ids", "INT64", {1, 1});
  input.mutable_contents()->add_int_contents(5);
  ExpectRefused(request, ".ids", "0 values in int64_contents, its shape has 1");
  input.mutable_contents()->add_int64_contents(5);
  ExpectRefused(request, ".ids", "values outside of int64_contents");
}

TEST(IdsInputs, SharedMemoryIsRefused) {
  inference::ModelInferRequest request = IdsRequest();
  (*request.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r");
  EXPECT_TRUE(absl::IsUnimplemented(InputsFromProto(request, Served(".ids")).status()));
}

TEST(IdsInputs, LongNamesMakeShortMessages) {
  inference::ModelInferRequest request = IdsRequest();
  request.mutable_inputs(1)->set_name(std::string(1 << 20, 'n'));
  const absl::Status status = InputsFromProto(request, Served(".ids")).status();
  EXPECT_LT(status.message().size(), 300u);
}

// Any bytes at all: an answer or an error, never a crash (the sanitizer builds watch it).
TEST(Inputs, RandomRequestsNeverCrash) {
  std::mt19937 random(7);
  const auto pick = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  const std::vector<std::string> names = {"input_ids", "attention_mask", "token_type_ids", "text",
                                          ""};
  const std::vector<std::string> types = {"INT64", "INT32", "BYTES", "FP32", ""};
  const std::vector<int64_t> dims = {-1, 0, 1, 2, 3, 8, 9, kMaxInt64};
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    inference::ModelInferRequest request;
    for (size_t i = 0; i <= pick(3); ++i) {
      auto& input = AddInput(request, names[pick(names.size())], types[pick(types.size())], {});
      for (size_t d = 0; d < 1 + pick(3); ++d) input.add_shape(dims[pick(dims.size())]);
      if (pick(2) == 0) request.add_raw_input_contents(std::string(8 * pick(8), '\0'));
      for (size_t v = 0; v < pick(4); ++v) input.mutable_contents()->add_int64_contents(1);
    }
    const std::string suffix = pick(2) == 0 ? "" : ".ids";
    accepted += InputsFromProto(request, Served(suffix)).ok() ? 1 : 0;
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace attendant
