// SPDX-License-Identifier: Apache-2.0
#include "server/models/memory/model_memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/threads/cgroup.h"

namespace attendant {
namespace {

// Round numbers that some kernels write where there is no limit are above this.
constexpr int64_t kNoLimit = int64_t{1} << 60;

std::optional<int64_t> ReadNumber(const std::string& path) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(ReadFirstLine(path), &value)) return std::nullopt;
  return value;
}

// The value of a line "KEY VALUE" or "KEY: VALUE kB"; 0 when there is none.
int64_t ReadField(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return 0;
}

// The cache is the fields of memory.stat: pages of files, read once or often, as MemAvailable
// counts them. A file that is mapped a second time becomes active. Memory of tmpfs is in neither.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* cache[2];
};
constexpr GroupFiles kV2 = {"/memory.max", "/memory.current", {"inactive_file", "active_file"}};
constexpr GroupFiles kV1 = {"/memory.limit_in_bytes",
                            "/memory.usage_in_bytes",
                            {"total_inactive_file", "total_active_file"}};

std::optional<AvailableMemory> ReadGroup(const std::string& folder, const GroupFiles& files) {
  const std::optional<int64_t> limit = ReadNumber(folder + files.limit);
  const std::optional<int64_t> usage = ReadNumber(folder + files.usage);
  if (!limit || !usage || *limit >= kNoLimit) return std::nullopt;
  int64_t cache = 0;
  for (const char* field : files.cache) cache += ReadField(folder + "/memory.stat", field);
  const int64_t used = *usage - std::min(*usage, cache);
  return AvailableMemory{
      .bytes = std::max<int64_t>(*limit - used, 0),
      .reason = absl::StrCat("the cgroup's limit is ", *limit, " bytes, ", used, " are in use")};
}

void KeepLess(std::optional<AvailableMemory> other, std::optional<AvailableMemory>& least) {
  if (other && (!least || other->bytes < least->bytes)) least = std::move(other);
}

}  // namespace

std::optional<AvailableMemory> ReadAvailableMemory(const std::string& cgroup_root,
                                                   const std::string& meminfo) {
  std::optional<AvailableMemory> least;
  if (const int64_t kib = ReadField(meminfo, "MemAvailable:"); kib > 0) {
    least = {.bytes = kib * 1024, .reason = "MemAvailable of the system"};
  }
  for (const std::string& folder : CgroupFolders(cgroup_root, "")) {
    KeepLess(ReadGroup(folder, kV2), least);
  }
  for (const std::string& folder : CgroupFolders(cgroup_root + "/memory", "memory")) {
    KeepLess(ReadGroup(folder, kV1), least);
  }
  return least;
}

void GiveBackFreedMemory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

ModelMemory::Share& ModelMemory::Share::operator=(Share&& other) noexcept {
  if (this == &other) return *this;
  Resize(0);
  total_ = std::move(other.total_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void ModelMemory::Share::Resize(int64_t bytes) {
  if (total_ == nullptr) return;
  *total_ += bytes - bytes_;
  bytes_ = bytes;
}

ModelMemory::ModelMemory(int64_t max_bytes, Available available)
    : max_bytes_(max_bytes), available_(std::move(available)) {}

absl::StatusOr<ModelMemory::Share> ModelMemory::Reserve(const MemoryEstimate& estimate) {
  const std::optional<AvailableMemory> available = available_();
  if (available && estimate.peak() > available->bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "loading takes about ", estimate.peak(), " bytes (weights ", estimate.weight_bytes,
        ", scratch memory ", estimate.session_bytes, ", while it loads ", estimate.load_bytes,
        "), ", available->bytes, " are available: ", available->reason));
  }
  int64_t held = held_bytes();
  do {
    if (max_bytes_ > 0 && held + estimate.held() > max_bytes_) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "it takes about ", estimate.held(), " bytes (weights ", estimate.weight_bytes,
          ", scratch memory ", estimate.session_bytes, "), the loaded models take ", held,
          ", the limit of all together is ", max_bytes_));
    }
  } while (!total_->compare_exchange_weak(held, held + estimate.held()));
  Share share;
  share.total_ = total_;
  share.bytes_ = estimate.held();
  return share;
}

}  // namespace attendant
