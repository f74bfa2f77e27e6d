// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <type_traits>
#include <vector>

namespace orrery {

/// The numbers 0 to `size` - 1 by what `before` says of two of them; equal ones in their order.
template <typename Before>
std::vector<std::uint32_t> sorted_order(std::size_t size, const Before& before) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

/// A long list that grows without being copied, and whose beginning can be given back while the
/// rest is still read: to the system, since the heap keeps what lies between other things.
template <typename T>
class BlockList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::size_t kBlock = std::size_t{1} << 16U;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return blocks_[i / kBlock][i % kBlock]; }
  const T& operator[](std::size_t i) const { return blocks_[i / kBlock][i % kBlock]; }
  void push_back(const T& value) {
    if (size_ == blocks_.size() * kBlock) blocks_.push_back(make_block());
    (*this)[size_++] = value;
  }

  /// Sorts by what `before` says of two elements; equal ones stay in their order.
  template <typename Before>
  void sort(const Before& before) {
    bool sorted = true;
    for (std::size_t i = 1; i < size_ && sorted; ++i) sorted = !before((*this)[i], (*this)[i - 1]);
    if (sorted) return;
    permute(sorted_order(
        size_, [&](std::uint32_t a, std::uint32_t b) { return before((*this)[a], (*this)[b]); }));
  }

  /// How many of a sorted list come first, those that `first` holds for.
  template <typename First>
  std::size_t count_first(const First& first) const {
    std::size_t low = 0, high = size_;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (first((*this)[middle])) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /// Gives back the memory of all before `i`, block by block.
  void release_before(std::size_t i) {
    for (; released_ < std::min(i, size_) / kBlock; ++released_) blocks_[released_].reset();
  }
  /// Whether an element is still there.
  bool holds(std::size_t i) const { return i / kBlock >= released_; }
  void clear() { *this = {}; }

 private:
  /// The element at `order[i]` comes to `i`, along the cycles of the permutation.
  void permute(std::vector<std::uint32_t> order) {
    for (std::size_t start = 0; start < size_; ++start) {
      if (order[start] == start) continue;
      const T first = (*this)[start];
      std::size_t at = start;
      while (order[at] != start) {
        const std::size_t from = order[at];
        (*this)[at] = (*this)[from];
        order[at] = static_cast<std::uint32_t>(at);
        at = from;
      }
      (*this)[at] = first;
      order[at] = static_cast<std::uint32_t>(at);
    }
  }

  struct Unmap {
    void operator()(T* block) const { ::munmap(block, kBlock * sizeof(T)); }
  };
  using Block = std::unique_ptr<T[], Unmap>;

  static Block make_block() {
    void* const memory = ::mmap(nullptr, kBlock * sizeof(T), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return Block(static_cast<T*>(memory));
  }

  std::vector<Block> blocks_;
  std::size_t size_ = 0;
  std::size_t released_ = 0;  ///< number of blocks
};

}  // namespace orrery
