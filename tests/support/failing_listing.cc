// SPDX-License-Identifier: Apache-2.0
#include "tests/support/failing_listing.h"

#include <dirent.h>
#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

struct Listings {
  absl::Mutex mutex;
  std::string folder ABSL_GUARDED_BY(mutex);  // empty: none fails
  int entries ABSL_GUARDED_BY(mutex) = 0;
  std::map<DIR*, int> read ABSL_GUARDED_BY(mutex);  // entries but "." and ".."
};

Listings& listings() {
  static Listings& instance = *new Listings;
  return instance;
}

void Set(const std::string& folder, int entries) {
  absl::MutexLock lock(&listings().mutex);
  listings().folder = folder;
  listings().entries = entries;
  listings().read.clear();
}

bool Fails(DIR* directory) {
  absl::MutexLock lock(&listings().mutex);
  if (listings().folder.empty()) return false;
  std::error_code error;
  const fs::path path = fs::read_symlink(absl::StrCat("/proc/self/fd/", dirfd(directory)), error);
  return path == listings().folder && ++listings().read[directory] > listings().entries;
}

void Forget(DIR* directory) {
  absl::MutexLock lock(&listings().mutex);
  listings().read.erase(directory);
}

template <typename Function>
Function* Real(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

bool IsDot(const dirent* entry) {
  const absl::string_view name = entry == nullptr ? "" : entry->d_name;
  return name == "." || name == "..";
}

}  // namespace

FailingListing::FailingListing(const std::string& folder, int entries) {
  Set(fs::canonical(folder), entries);
}

FailingListing::~FailingListing() { Set("", 0); }

}  // namespace attendant

extern "C" {

dirent* readdir(DIR* directory) {
  static auto* const real = attendant::Real<dirent*(DIR*)>("readdir");
  dirent* const entry = real(directory);
  const int error = errno;
  const bool fails = !attendant::IsDot(entry) && attendant::Fails(directory);
  errno = fails ? EIO : error;
  return fails ? nullptr : entry;
}

int closedir(DIR* directory) {
  static auto* const real = attendant::Real<int(DIR*)>("closedir");
  attendant::Forget(directory);
  return real(directory);
}

}  // extern "C"
