// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/arena.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "kernels/core/base/int_math.h"
#include "kernels/core/check.h"

namespace attendant {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

}  // namespace

void Arena::Free::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{alignment});
}

Arena::Arena(int64_t capacity_bytes) : capacity_bytes_(RoundUp(capacity_bytes, kAlignment)) {
  if (capacity_bytes == 0) return;
  const auto bytes = static_cast<size_t>(capacity_bytes_);
  const auto alignment = static_cast<size_t>(capacity_bytes >= kHugePage ? kHugePage : kAlignment);
  memory_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{alignment}));
  owned_ = std::unique_ptr<std::byte, Free>(memory_, Free{alignment});
  // A hint: without huge pages everything is as before, only slower.
  if (capacity_bytes >= kHugePage) madvise(memory_, bytes, MADV_HUGEPAGE);
  // Also takes the page faults now, not in a request.
  std::memset(memory_, 0, bytes);
}

std::byte* Arena::AllocateBytes(int64_t bytes) {
  const int64_t begin = used_bytes_;
  used_bytes_ += RoundUp(bytes, kAlignment);
  if (memory_ == nullptr) return nullptr;
  ATTENDANT_CHECK(used_bytes_ <= capacity_bytes_);
  return memory_ + begin;
}

}  // namespace attendant
