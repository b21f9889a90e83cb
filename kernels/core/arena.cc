// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/arena.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "kernels/core/check.h"

namespace attendant {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

void Arena::Free::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{alignment});
}

Arena::Arena(size_t capacity_bytes)
    : capacity_bytes_(capacity_bytes),
      memory_(nullptr, Free{capacity_bytes >= kHugePage ? kHugePage : kAlignment}) {
  if (capacity_bytes == 0) return;
  const size_t alignment = memory_.get_deleter().alignment;
  memory_.reset(
      static_cast<std::byte*>(::operator new (capacity_bytes, std::align_val_t{alignment})));
  // A hint: without huge pages everything is as before, only slower.
  if (alignment == kHugePage) madvise(memory_.get(), capacity_bytes, MADV_HUGEPAGE);
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
