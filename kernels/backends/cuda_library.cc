// SPDX-License-Identifier: Apache-2.0
#include "kernels/backends/cuda_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

// The folder that this program lies in, with a slash at the end; empty when the system does not
// say.
std::string ProgramFolder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0 || length == static_cast<ssize_t>(sizeof(path))) return "";
  const absl::string_view program(path, static_cast<size_t>(length));
  return std::string(program.substr(0, program.rfind('/') + 1));
}

// A path that exists, or the bare name, which the loader searches for.
std::string FindLibrary() {
  const std::string folder = ProgramFolder();
  for (const char* place : {"", "../lib/attendant/"}) {
    const std::string path = absl::StrCat(folder, place, kCudaLibraryName);
    if (!folder.empty() && access(path.c_str(), F_OK) == 0) return path;
  }
  return kCudaLibraryName;
}

// The driver's library, which the CUDA library cannot do without. Looking for it first is cheap:
// the CUDA library brings cuBLASLt along, 150 MiB of memory.
absl::Status LoadDriver() {
  if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE) != nullptr) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("there is no NVIDIA driver: ", dlerror()));
}

absl::Status LoadError(const std::string& path, absl::string_view error) {
  // The loader's only way of saying that there is no such file. Anything else, a library that this
  // one needs among it, is a defect of an installation that is there.
  const std::string missing = absl::StrCat(path, ": cannot open shared object file: No such file");
  if (absl::string_view(error).substr(0, missing.size()) == missing) {
    return absl::NotFoundError(absl::StrCat("there is no ", path));
  }
  return absl::UnavailableError(absl::StrCat(path, " does not load: ", error));
}

}  // namespace

absl::StatusOr<const AttendantCudaInterface*> LoadCudaLibrary(const std::string& path) {
  if (path.empty()) ATTENDANT_RETURN_IF_ERROR(LoadDriver());
  const std::string file = path.empty() ? FindLibrary() : path;
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return LoadError(file, dlerror());
  const auto function = reinterpret_cast<AttendantCudaInterfaceFunction>(
      dlsym(library, ATTENDANT_CUDA_INTERFACE_SYMBOL));
  if (function == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(file, " has no ", ATTENDANT_CUDA_INTERFACE_SYMBOL));
  }
  const AttendantCudaInterface* const interface = function(ATTENDANT_CUDA_INTERFACE_VERSION);
  if (interface == nullptr || interface->version != ATTENDANT_CUDA_INTERFACE_VERSION) {
    return absl::FailedPreconditionError(
        absl::StrCat(file, " does not offer version ", ATTENDANT_CUDA_INTERFACE_VERSION,
                     " of the interface: it belongs to another version of attendant-server"));
  }
  return interface;
}

absl::Status FromCudaStatus(const AttendantCudaStatus& status) {
  const absl::string_view message(status.message, strnlen(status.message, sizeof(status.message)));
  switch (status.code) {
    case ATTENDANT_CUDA_OK:
      return absl::OkStatus();
    case ATTENDANT_CUDA_INVALID_ARGUMENT:
      return absl::InvalidArgumentError(message);
    case ATTENDANT_CUDA_RESOURCE_EXHAUSTED:
      return absl::ResourceExhaustedError(message);
    case ATTENDANT_CUDA_UNIMPLEMENTED:
      return absl::UnimplementedError(message);
    case ATTENDANT_CUDA_UNAVAILABLE:
    case ATTENDANT_CUDA_DEVICE_LOST:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace attendant
