// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/arena.h"

#include <cstring>
#include <new>

#include "kernels/core/check.h"

namespace attendant {

void Arena::Free::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{kAlignment});
}

Arena::Arena(size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {
  if (capacity_bytes == 0) return;
  memory_.reset(static_cast<std::byte*>(::operator new(capacity_bytes, std::align_val_t{kAlignment})));
  // Also takes the page faults now, not in a request.
  std::memset(memory_.get(), 0, capacity_bytes);
}

std::byte* Arena::AllocateBytes(size_t bytes) {
  const size_t begin = used_bytes_;
  used_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (!memory_) return nullptr;
  ATTENDANT_CHECK(used_bytes_ <= capacity_bytes_);
  return memory_.get() + begin;
}

}  // namespace attendant
