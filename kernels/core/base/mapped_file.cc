// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

// Where a file is mapped; no file: both 0. A handler of signals cannot wait for a lock, so it may
// see a slot half changed, but never that of the file whose page it handles: its thread reads it.
struct Slot {
  std::atomic<uintptr_t> begin = 0;
  std::atomic<uintptr_t> end = 0;
};

std::array<Slot, 4096> slots;
std::mutex slots_mutex;  // of those who change them
std::mutex watches_mutex;
std::set<MappedReads*> watches;  // guarded by watches_mutex
std::atomic<int64_t> lost_pages = 0;
struct sigaction action_before;
uintptr_t page_bytes = 0;
static_assert(std::atomic<uintptr_t>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

bool LiesInAFile(uintptr_t address) {
  return std::any_of(slots.begin(), slots.end(), [address](const Slot& slot) {
    const uintptr_t begin = slot.begin;
    return begin <= address && address < slot.end && slot.begin == begin;
  });
}

// The instruction that could not read runs again after it.
void OnBusError(int signal, siginfo_t* info, void* /*context*/) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool is_fault = info->si_code > 0;  // not sent by a process
  void* const page = reinterpret_cast<void*>(address & ~(page_bytes - 1));
  if (is_fault && LiesInAFile(address) &&
      mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page) {
    ++lost_pages;
  } else {
    sigaction(SIGBUS, &action_before, nullptr);
    if (!is_fault) raise(signal);  // it comes when this returns
  }
  errno = saved_errno;
}

void InstallHandler() {
  page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &action_before);
}

Slot* Find(uintptr_t begin) {
  auto* const found = std::find_if(slots.begin(), slots.end(),
                                   [begin](const Slot& slot) { return slot.begin == begin; });
  return found == slots.end() ? nullptr : found;
}

// False when no slot is free.
bool Add(uintptr_t begin, uintptr_t end) {
  const std::lock_guard lock(slots_mutex);
  Slot* const slot = Find(0);
  if (slot == nullptr) return false;
  slot->begin = begin;
  slot->end = end;
  return true;
}

void Remove(uintptr_t begin) {
  const std::lock_guard lock(slots_mutex);
  Slot* const slot = Find(begin);
  slot->end = 0;
  slot->begin = 0;
}

// Whether the file that is there now is the one that was there, written in place. One that cannot
// be examined was removed.
bool IsRewritten(const std::string& path, const struct stat& before) {
  struct stat now = {};
  if (stat(path.c_str(), &now) != 0) return false;
  if (now.st_dev != before.st_dev || now.st_ino != before.st_ino) return false;
  return now.st_size != before.st_size || now.st_mtim.tv_sec != before.st_mtim.tv_sec ||
         now.st_mtim.tv_nsec != before.st_mtim.tv_nsec;
}

uintptr_t Address(const void* place) { return reinterpret_cast<uintptr_t>(place); }

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  static std::once_flag installed;
  std::call_once(installed, InstallHandler);
  ATTENDANT_ASSIGN_OR_RETURN(RegularFile file, RegularFile::Open(path));
  {
    const std::lock_guard lock(watches_mutex);
    for (MappedReads* const watch : watches) watch->Add({path, file.status()});
  }
  const auto bytes = static_cast<size_t>(file.bytes());
  if (bytes == 0) return MappedFile(std::span<const std::byte>());
  void* start = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (start == MAP_FAILED) {
    return FileError(errno, absl::StrCat("map the ", bytes, " bytes of"), path);
  }
  if (!Add(Address(start), Address(start) + bytes)) {
    munmap(start, bytes);
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", path, ": ", slots.size(), " files are mapped"));
  }
  return MappedFile(std::span(static_cast<const std::byte*>(start), bytes));
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, std::span<const std::byte>())) {}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  Remove(Address(bytes_.data()));
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedReads::MappedReads() : lost_before_(lost_pages) {
  const std::lock_guard lock(watches_mutex);
  watches.insert(this);
}

MappedReads::~MappedReads() {
  const std::lock_guard lock(watches_mutex);
  watches.erase(this);
}

void MappedReads::Add(const File& file) {
  const std::lock_guard lock(mutex_);
  files_.push_back(file);
}

absl::Status MappedReads::Check(const absl::Status& read) const {
  const std::lock_guard lock(mutex_);
  for (const File& file : files_) {
    if (IsRewritten(file.path, file.found)) {
      return absl::UnavailableError(absl::StrCat(file.path, " changed while it was read"));
    }
  }
  if (lost_pages == lost_before_) return read;
  return absl::UnavailableError("a file of weights could not be read from its disk");
}

}  // namespace attendant
