// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "workloads/software/training_switches.h"

namespace orrery {

/// PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp): tensors are rounded to 512 B
/// and get the smallest free block of their stream that holds them, split where enough is left;
/// blocks that are freed join free neighbours and stay reserved. Tensors of up to 1 MiB have a pool
/// of their own.
class CachingAllocator {
 public:
  /// A block that was given out.
  using Handle = std::uint32_t;
  using Handles = std::vector<Handle>;

  explicit CachingAllocator(Segments segments) : segments_(segments) {}

  /// @param stream whose work uses the tensor: others get none of its blocks
  Handle allocate(std::int64_t bytes, int stream = 0);
  void free(Handle block);
  /// Tensors of those sizes.
  Handles allocate(const std::vector<std::int64_t>& tensors);
  /// Empties the list.
  void release(Handles& blocks);

  std::int64_t allocated() const { return allocated_; }
  std::int64_t reserved() const { return reserved_; }
  std::int64_t peak_allocated() const { return peak_allocated_; }

 private:
  static constexpr Handle kNone = static_cast<Handle>(-1);
  struct Block {
    std::int64_t bytes = 0;
    Handle before = kNone, after = kNone;  ///< neighbours in its segment
    int pool = 0;
    bool free = false;
  };
  /// Blocks of a stream and size class: free ones by size, then age, and the end of the segment
  /// that grows.
  struct Pool {
    bool small = false;
    std::set<std::pair<std::int64_t, Handle>> free;
    Handle last = kNone;
  };

  int pool_of(bool small, int stream);
  Handle grow(int pool, std::int64_t bytes);
  Handle add_block(const Block& block);
  void split(Handle block, std::int64_t bytes);
  void set_free(Handle block);
  void take(Handle block);
  Handle join(Handle first, Handle second);

  Segments segments_;
  std::vector<Block> blocks_;
  std::vector<Handle> unused_;  ///< entries of blocks_ that were joined to others
  std::vector<Pool> pools_;
  std::map<std::pair<int, bool>, int> pool_ids_;
  std::int64_t allocated_ = 0, reserved_ = 0, peak_allocated_ = 0;
};

/// Bytes of a tensor, as the allocator takes them.
inline std::int64_t whole_bytes(double bytes) { return static_cast<std::int64_t>(bytes); }

}  // namespace orrery
