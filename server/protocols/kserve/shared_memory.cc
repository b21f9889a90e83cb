// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

constexpr size_t kMaxRegions = 256;
constexpr size_t kMaxRegionNameBytes = 256;
constexpr uint64_t kMaxOffset = uint64_t{1} << 60;

// The key is one name below the system's folder of shared memory: no path leads out of it.
absl::Status CheckKey(absl::string_view key) {
  const absl::string_view name = absl::StartsWith(key, "/") ? key.substr(1) : key;
  const bool plain = !name.empty() && name != "." && name != ".." && name.size() <= NAME_MAX &&
                     name.find_first_of(absl::string_view("/\0", 2)) == absl::string_view::npos;
  if (plain) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("shared memory key ", Quote(key), " is not a '/' and a name"));
}

absl::StatusOr<int64_t> SizeOf(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return absl::ErrnoToStatus(errno, "shared memory");
  if (!S_ISREG(status.st_mode)) return absl::InvalidArgumentError("it is not shared memory");
  return static_cast<int64_t>(status.st_size);
}

absl::StatusOr<std::shared_ptr<const int>> OpenKey(const std::string& key) {
  const int opened = shm_open(key.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK, 0);
  if (opened < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("shared memory key ", Quote(key)));
  }
  return std::shared_ptr<const int>(new int(opened), [](const int* descriptor) {
    close(*descriptor);
    delete descriptor;
  });
}

absl::Status Shortened(int64_t bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat("the shared memory has less than the ", bytes, " bytes that were registered"));
}

}  // namespace

absl::StatusOr<std::string> SharedRange::Read() const {
  std::string data(static_cast<size_t>(bytes_), '\0');
  for (int64_t done = 0; done < bytes_;) {
    const ssize_t count =
        pread(*descriptor_, data.data() + done, static_cast<size_t>(bytes_ - done), offset_ + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Shortened(bytes_);
    done += count;
  }
  return data;
}

// Writing beyond the end would make the memory longer.
absl::Status SharedRange::Write(absl::string_view data) const {
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t size, SizeOf(*descriptor_));
  const auto bytes = static_cast<int64_t>(data.size());
  if (size - offset_ < bytes) return Shortened(bytes);
  for (int64_t done = 0; done < bytes;) {
    const ssize_t count =
        pwrite(*descriptor_, data.data() + done, static_cast<size_t>(bytes - done), offset_ + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::ErrnoToStatus(errno, "cannot write shared memory");
    done += count;
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryRegions::Register(const std::string& name, const std::string& key,
                                           uint64_t offset, uint64_t bytes) {
  if (name.empty() || name.size() > kMaxRegionNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a region's name of ", name.size(),
                                                   " bytes must have 1 to ", kMaxRegionNameBytes));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckKey(key));
  ATTENDANT_ASSIGN_OR_RETURN(std::shared_ptr<const int> descriptor, OpenKey(key));
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t size, SizeOf(*descriptor));
  if (bytes == 0 || offset > kMaxOffset || bytes > kMaxOffset ||
      offset + bytes > static_cast<uint64_t>(size)) {
    return absl::InvalidArgumentError(absl::StrCat("region ", Quote(name), " has ", bytes,
                                                   " bytes from ", offset, " on, key ", Quote(key),
                                                   " has ", size));
  }
  Open region{.region = {.key = key,
                         .offset = static_cast<int64_t>(offset),
                         .bytes = static_cast<int64_t>(bytes)},
              .descriptor = std::move(descriptor)};
  absl::MutexLock lock(&mutex_);
  if (regions_.contains(name)) {
    return absl::AlreadyExistsError(
        absl::StrCat("shared memory region ", Quote(name), " already in manager"));
  }
  if (regions_.size() >= kMaxRegions) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMaxRegions, " regions of shared memory are registered, which is the limit"));
  }
  regions_.emplace(name, std::move(region));
  return absl::OkStatus();
}

void SharedMemoryRegions::Unregister(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (name.empty()) {
    regions_.clear();
  } else {
    regions_.erase(name);
  }
}

absl::StatusOr<std::map<std::string, SharedMemoryRegions::Region>> SharedMemoryRegions::List(
    const std::string& name) const {
  std::map<std::string, Region> list;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, open] : regions_) {
    if (name.empty() || name == key) list.emplace(key, open.region);
  }
  if (!name.empty() && list.empty()) {
    return absl::NotFoundError(absl::StrCat("Unable to find shared memory region: ", Quote(name)));
  }
  return list;
}

absl::StatusOr<SharedRange> SharedMemoryRegions::Find(const std::string& name, int64_t offset,
                                                      int64_t bytes) const {
  absl::MutexLock lock(&mutex_);
  const auto found = regions_.find(name);
  if (found == regions_.end()) {
    return absl::NotFoundError(absl::StrCat("Unable to find shared memory region: ", Quote(name)));
  }
  const Region& region = found->second.region;
  if (offset < 0 || bytes < 0 || offset > region.bytes || bytes > region.bytes - offset) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory region ", Quote(name), " has ",
                                                   region.bytes, " bytes, not ", bytes, " from ",
                                                   offset, " on"));
  }
  SharedRange range;
  range.descriptor_ = found->second.descriptor;
  range.offset_ = region.offset + offset;
  range.bytes_ = bytes;
  return range;
}

}  // namespace attendant
