// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/io/json_file.h"
#include "kernels/io/safetensors.h"

namespace attendant {
namespace {

template <typename T>
absl::Status CopyField(const StoredTensor& tensor, const char* dtype, std::vector<T>& values) {
  if (tensor.dtype != dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("golden ", tensor.name, " is ", tensor.dtype, ", expected ", dtype));
  }
  values.resize(tensor.data.size() / sizeof(T));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return absl::OkStatus();
}

absl::Status SetField(const StoredTensor& tensor, const std::string& field, GoldenCase& golden) {
  if (field == "token_ids") return CopyField(tensor, "I32", golden.token_ids);
  if (field == "positions") return CopyField(tensor, "I32", golden.positions);
  if (field == "segment_ids") return CopyField(tensor, "I32", golden.segment_ids);
  if (field == "last_hidden_state") return CopyField(tensor, "F32", golden.last_hidden_state);
  if (field == "embedding") return CopyField(tensor, "F32", golden.embedding);
  if (field == "attention_weights") return CopyField(tensor, "F32", golden.attention_weights);
  if (field == "hidden_states") return CopyField(tensor, "F32", golden.hidden_states);
  return absl::InvalidArgumentError(absl::StrCat("golden ", tensor.name, " is no known field"));
}

// Cases that only texts stand behind leave out what follows from their length.
void FillDefaults(GoldenCase& golden) {
  if (golden.positions.empty()) {
    golden.positions.resize(golden.token_ids.size());
    std::iota(golden.positions.begin(), golden.positions.end(), 0);
  }
  golden.segment_ids.resize(golden.token_ids.size());
}

}  // namespace

std::string GoldenDirectory(const std::string& model) {
  return absl::StrCat("tests/golden/encoder/", model);
}

absl::StatusOr<std::vector<GoldenCase>> ReadGoldenCases(const std::string& model) {
  absl::StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open(absl::StrCat(GoldenDirectory(model), "/golden.safetensors"));
  if (!file.ok()) return file.status();
  std::map<std::string, GoldenCase> by_name;
  for (const StoredTensor& tensor : file->tensors()) {
    const size_t slash = tensor.name.find('/');
    const std::string name = tensor.name.substr(0, slash);
    by_name[name].name = name;
    absl::Status status = SetField(tensor, tensor.name.substr(slash + 1), by_name[name]);
    if (!status.ok()) return status;
  }
  std::vector<GoldenCase> cases;
  for (auto& [name, golden] : by_name) {
    FillDefaults(golden);
    cases.push_back(std::move(golden));
  }
  return cases;
}

absl::StatusOr<std::vector<std::string>> ReadGoldenTexts(const std::string& file) {
  absl::StatusOr<JsonNode> json = ReadJsonFile(GoldenDirectory(file));
  if (!json.ok()) return json.status();
  absl::StatusOr<std::vector<JsonNode>> elements = json->Elements();
  if (!elements.ok()) return elements.status();
  std::vector<std::string> texts(elements->size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (absl::Status status = (*elements)[i].Get(texts[i]); !status.ok()) return status;
  }
  return texts;
}

absl::StatusOr<std::string> RealModelDirectory() {
  std::string directory;
  if (const char* named = std::getenv("ATTENDANT_TEST_MODEL")) {
    directory = named;
  } else if (const char* home = std::getenv("HOME")) {
    directory = absl::StrCat(home, "/.cache/attendant/models/all-MiniLM-L6-v2");
  }
  if (!directory.empty() && std::filesystem::is_directory(directory)) return directory;
  return absl::NotFoundError(
      absl::StrCat("no model folder '", directory,
                   "': set ATTENDANT_TEST_MODEL to all-MiniLM-L6-v2's; tests/run.sh fetches it"));
}

}  // namespace attendant
