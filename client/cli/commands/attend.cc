// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/commands/attend_flags.h"
#include "client/cli/commands/attend_report.h"
#include "client/cli/files/npy.h"
#include "client/cli/files/safetensors.h"
#include "client/cli/format.h"

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
    common_.connect.max_attempts = 5;
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(common_.connect);
    if (!client.ok()) return UsageError(client.status().message(), io);
    const absl::Status status = list_ ? List(**client, io) : Attend(**client, io);
    return status.ok() ? kExitOk : CallError(status, common_.connect, io);
  }

 private:
  absl::Status List(Client& client, Io& io) const {
    const absl::StatusOr<AttentionOffer> offer = client.ListAttention();
    if (!offer.ok()) return offer.status();
    if (!common_.json) {
      io.out << OfferText(*offer);
      return absl::OkStatus();
    }
    nlohmann::ordered_json json{{"kinds", nlohmann::ordered_json::array()},
                                {"modules", nlohmann::ordered_json::array()}};
    for (const AttentionKind& kind : offer->kinds) {
      json["kinds"].push_back({{"name", kind.name},
                               {"title", kind.title},
                               {"formula", kind.formula},
                               {"time", kind.time},
                               {"memory", kind.memory},
                               {"use", kind.use},
                               {"weights", kind.weights},
                               {"parameters", kind.parameters}});
    }
    for (const AttentionModule& module : offer->modules) json["modules"].push_back(ToJson(module));
    io.out << Dump(json) << "\n";
    return absl::OkStatus();
  }

  absl::Status Attend(Client& client, Io& io) {
    AskForWeights();
    absl::StatusOr<AttendRequest> request = flags_.Request();
    if (!request.ok()) return request.status();
    const absl::StatusOr<AttendResult> result = client.Attend(*request);
    if (!result.ok()) return result.status();
    if (absl::Status status = WriteFiles(*result); !status.ok()) return status;
    if (common_.json) {
      WriteJson(*result, io);
    } else {
      io.out << Summary(*request, *result);
      if (show_weights_ && result->weights.has_value()) io.out << WeightsStrips(*result->weights);
    }
    return io.out ? absl::OkStatus() : absl::FailedPreconditionError("cannot write the output");
  }

  // Whoever wants to see or keep them need not ask twice.
  void AskForWeights() {
    const bool wanted = show_weights_ || !weights_output_.empty();
    if (wanted && flags_.request.weights == WeightsOutput::kNone) {
      flags_.request.weights = WeightsOutput::kPerHead;
    }
  }

  absl::Status WriteFiles(const AttendResult& result) const {
    absl::Status status;
    if (absl::EndsWith(output_, ".safetensors")) {
      std::map<std::string, const Tensor*> tensors = {{"output", &result.output}};
      if (result.weights.has_value()) tensors["weights"] = &*result.weights;
      status = WriteSafetensors(output_, tensors);
    } else if (!output_.empty()) {
      status = WriteNpy(output_, result.output.shape, result.output.values);
    }
    if (!status.ok() || weights_output_.empty() || !result.weights.has_value()) return status;
    return WriteNpy(weights_output_, result.weights->shape, result.weights->values);
  }

  // The values themselves are left out when they go to a file.
  void WriteJson(const AttendResult& result, Io& io) const {
    FloatJson json{{"kind", flags_.request.model.empty() ? flags_.request.kind : "module"},
                   {"output", ToJson(result.output, output_.empty())}};
    if (result.weights.has_value()) {
      json["weights"] = ToJson(*result.weights, output_.empty() && weights_output_.empty());
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
          "A FILE is x.npy, x.safetensors:TENSOR, or x.safetensors for the tensor of the flag's "
          "name.\n\n  attendant attend --query q.npy --key k.npy --value v.npy --causal --output "
          "out.npy\n  attendant attend --kind local --window 4 --input qkv.safetensors "
          "--show_weights\n  attendant attend --model mha --query x.npy --weights per_head "
          "--output out.safetensors\n  attendant attend --list\n",
      .make = []() -> std::unique_ptr<Command> { return std::make_unique<AttendCommand>(); }};
}

}  // namespace attendant::client
