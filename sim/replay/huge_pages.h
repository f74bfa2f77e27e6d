// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace orrery {

/// Memory in pages of 2 MiB, where the system has them to give: the state of 100,000 ranks is
/// touched all over, and with pages of 4 KiB most touches also miss the table of pages.
template <typename T>
struct HugePages {
  using value_type = T;

  HugePages() = default;
  template <typename U>
  explicit HugePages(const HugePages<U>&) {}

  T* allocate(std::size_t count) {
    void* memory = ::operator new(count * sizeof(T), alignment(count));
#ifdef MADV_HUGEPAGE
    // A wish: what is not granted is slower, not wrong.
    if (count * sizeof(T) >= kPage) madvise(memory, count * sizeof(T), MADV_HUGEPAGE);
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) { ::operator delete(memory, alignment(count)); }

  friend bool operator==(const HugePages&, const HugePages&) { return true; }

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20U;

  static std::align_val_t alignment(std::size_t count) {
    return std::align_val_t{count * sizeof(T) >= kPage ? kPage : alignof(T)};
  }
};

}  // namespace orrery
