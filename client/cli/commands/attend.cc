// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/commands/attend_flags.h"
#include "client/cli/commands/attend_report.h"
#include "client/cli/files/npy.h"
#include "client/cli/files/output_file.h"
#include "client/cli/files/safetensors.h"
#include "client/cli/format.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

FloatJson ToJson(const Tensor& tensor, bool with_values) {
  FloatJson json{{"shape", tensor.shape}};
  if (with_values) json["values"] = tensor.values;
  return json;
}

class AttendCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    flags_.AddTo(flags);
    flags.Section("Output");
    flags.Add("output", &output_, "FILE",
              "Write the output to a .npy file, or with the attention weights to a .safetensors "
              "file");
    flags.Add("weights_output", &weights_output_, "FILE.npy",
              "Write the attention weights to a NumPy file");
    flags.AddSwitch("show_weights", &show_weights_, "Draw the attention weights with characters");
    flags.AddSwitch("list", &list_,
                    "List the kinds with their parameters and costs, the modules and the limits");
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    if (!arguments.empty()) return UsageError("attend takes flags only", io);
    return RunWithClient(
        common_, io, [&](Client& client) { return list_ ? List(client, io) : Attend(client, io); });
  }

 private:
  absl::Status List(Client& client, Io& io) const {
    ATTENDANT_ASSIGN_OR_RETURN(const AttentionOffer offer, client.ListAttention());
    if (!common_.json) {
      io.out << OfferText(offer);
      return absl::OkStatus();
    }
    nlohmann::ordered_json json{{"kinds", nlohmann::ordered_json::array()},
                                {"modules", nlohmann::ordered_json::array()}};
    for (const AttentionKind& kind : offer.kinds) {
      json["kinds"].push_back({{"name", kind.name},
                               {"title", kind.title},
                               {"formula", kind.formula},
                               {"time", kind.time},
                               {"memory", kind.memory},
                               {"use", kind.use},
                               {"weights", kind.has_attention_weights},
                               {"parameters", kind.parameters}});
    }
    for (const AttentionModule& module : offer.modules) json["modules"].push_back(ToJson(module));
    io.out << Dump(json) << "\n";
    return absl::OkStatus();
  }

  absl::Status Attend(Client& client, Io& io) {
    ATTENDANT_RETURN_IF_ERROR(CheckWritable(output_));
    ATTENDANT_RETURN_IF_ERROR(CheckWritable(weights_output_));
    AskForWeights();
    ATTENDANT_ASSIGN_OR_RETURN(AttendRequest request, flags_.Request());
    ATTENDANT_ASSIGN_OR_RETURN(const AttendResult result, client.Attend(request));
    ATTENDANT_RETURN_IF_ERROR(WriteFiles(result));
    if (common_.json) {
      WriteJson(result, io);
    } else {
      io.out << Summary(request, result);
      if (show_weights_ && result.attention_weights.has_value())
        io.out << WeightsStrips(*result.attention_weights);
    }
    return io.out ? absl::OkStatus() : absl::FailedPreconditionError("cannot write the output");
  }

  // --show_weights and --weights_output ask for attention weights too.
  void AskForWeights() {
    const bool wanted = show_weights_ || !weights_output_.empty();
    if (wanted && flags_.request.attention_weights == WeightsOutput::kNone) {
      flags_.request.attention_weights = WeightsOutput::kPerHead;
    }
  }

  absl::Status WriteFiles(const AttendResult& result) const {
    if (absl::EndsWith(output_, ".safetensors")) {
      std::map<std::string, const Tensor*> tensors = {{"output", &result.output}};
      if (result.attention_weights.has_value()) tensors["weights"] = &*result.attention_weights;
      ATTENDANT_RETURN_IF_ERROR(WriteSafetensors(output_, tensors));
    } else if (!output_.empty()) {
      ATTENDANT_RETURN_IF_ERROR(WriteNpy(output_, result.output.shape, result.output.values));
    }
    if (weights_output_.empty() || !result.attention_weights.has_value()) return absl::OkStatus();
    return WriteNpy(weights_output_, result.attention_weights->shape,
                    result.attention_weights->values);
  }

  // Leaves out the values that go to a file.
  void WriteJson(const AttendResult& result, Io& io) const {
    FloatJson json{{"kind", flags_.request.model.empty() ? flags_.request.kind : "module"},
                   {"output", ToJson(result.output, output_.empty())}};
    if (result.attention_weights.has_value()) {
      json["weights"] =
          ToJson(*result.attention_weights, output_.empty() && weights_output_.empty());
    }
    json["timings"] = {{"read_us", result.timings.tokenize_us},
                       {"queue_us", result.timings.queue_us},
                       {"compute_us", result.timings.compute_us},
                       {"total_us", result.timings.total_us}};
    io.out << Dump(json) << "\n";
  }

  CommonFlags common_;
  AttendFlags flags_;
  std::string output_;
  std::string weights_output_;
  bool show_weights_ = false;
  bool list_ = false;
};

}  // namespace

CommandInfo AttendCommandInfo() {
  return {
      .name = "attend",
      .summary = "Computes attention over tensors from files",
      .arguments = "",
      .details =
          "A FILE is x.npy, x.safetensors:TENSOR, or x.safetensors for the tensor named like the "
          "flag.\n\n  attendant attend --query q.npy --key k.npy --value v.npy --causal --output "
          "out.npy\n  attendant attend --kind local --window 4 --input qkv.safetensors "
          "--show_weights\n  attendant attend --model mha --query x.npy --weights per_head "
          "--output out.safetensors\n  attendant attend --list\n",
      .make = []() -> std::unique_ptr<Command> { return std::make_unique<AttendCommand>(); }};
}

}  // namespace attendant::client
