// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/memory/caching_allocator.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
// Constants of CUDACachingAllocator.cpp.
constexpr std::int64_t kMinBlockSize = 512;
constexpr std::int64_t kSmallSize = kMiB;
constexpr std::int64_t kSmallBuffer = 2 * kMiB;
constexpr std::int64_t kLargeBuffer = 20 * kMiB;
constexpr std::int64_t kMinLargeAlloc = 10 * kMiB;
constexpr std::int64_t kRoundLarge = 2 * kMiB;

std::int64_t rounded(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// What a new segment has for a block.
std::int64_t segment_bytes(std::int64_t bytes) {
  if (bytes <= kSmallSize) return kSmallBuffer;
  if (bytes < kMinLargeAlloc) return kLargeBuffer;
  return rounded(bytes, kRoundLarge);
}

}  // namespace

CachingAllocator::Handle CachingAllocator::allocate(std::int64_t bytes, int stream) {
  const std::int64_t needed = std::max(kMinBlockSize, rounded(bytes, kMinBlockSize));
  const int pool = pool_of(needed <= kSmallSize, stream);
  const auto found = pools_[static_cast<std::size_t>(pool)].free.lower_bound({needed, 0});
  const bool fits = found != pools_[static_cast<std::size_t>(pool)].free.end();
  const Handle block = fits ? found->second : grow(pool, needed);
  take(block);
  split(block, needed);
  allocated_ += blocks_[block].bytes;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return block;
}

void CachingAllocator::free(Handle block) {
  allocated_ -= blocks_[block].bytes;
  Handle whole = block;
  if (const Handle after = blocks_[whole].after; after != kNone && blocks_[after].free) {
    take(after);
    whole = join(whole, after);
  }
  if (const Handle before = blocks_[whole].before; before != kNone && blocks_[before].free) {
    take(before);
    whole = join(before, whole);
  }
  set_free(whole);
}

int CachingAllocator::pool_of(bool small, int stream) {
  const auto [entry, added] =
      pool_ids_.try_emplace({stream, small}, static_cast<int>(pools_.size()));
  if (added) pools_.push_back({small, {}, kNone});
  return entry->second;
}

/// A free block of at least `bytes` that was not there: a segment, or what a segment that grows has
/// more, joined to the free block at its end.
CachingAllocator::Handle CachingAllocator::grow(int pool, std::int64_t bytes) {
  Pool& of = pools_[static_cast<std::size_t>(pool)];
  if (segments_ == Segments::kFixed) {
    const Handle block = add_block({segment_bytes(bytes), kNone, kNone, pool, false});
    reserved_ += blocks_[block].bytes;
    set_free(block);
    return block;
  }
  const bool end_is_free = of.last != kNone && blocks_[of.last].free;
  const std::int64_t there = end_is_free ? blocks_[of.last].bytes : 0;
  const std::int64_t more = rounded(bytes - there, of.small ? kSmallBuffer : kLargeBuffer);
  reserved_ += more;
  const Handle block = add_block({more, of.last, kNone, pool, false});
  if (of.last != kNone) blocks_[of.last].after = block;
  const Handle before = of.last;
  of.last = block;
  if (!end_is_free) {
    set_free(block);
    return block;
  }
  take(before);
  const Handle whole = join(before, block);
  set_free(whole);
  return whole;
}

CachingAllocator::Handles CachingAllocator::allocate(const std::vector<std::int64_t>& tensors) {
  Handles handles;
  handles.reserve(tensors.size());
  for (const std::int64_t bytes : tensors) handles.push_back(allocate(bytes));
  return handles;
}

void CachingAllocator::release(Handles& blocks) {
  for (const Handle block : blocks) free(block);
  blocks.clear();
}

CachingAllocator::Handle CachingAllocator::add_block(const Block& block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<Handle>(blocks_.size() - 1);
  }
  const Handle handle = unused_.back();
  unused_.pop_back();
  blocks_[handle] = block;
  return handle;
}

/// What is left beyond `bytes` becomes free where it is worth it. Segments that grow split large
/// blocks as they split small ones.
void CachingAllocator::split(Handle block, std::int64_t bytes) {
  const std::int64_t left = blocks_[block].bytes - bytes;
  const int pool = blocks_[block].pool;
  const bool all =
      pools_[static_cast<std::size_t>(pool)].small || segments_ == Segments::kExpandable;
  if (all ? left < kMinBlockSize : left <= kSmallSize) return;
  const Handle after = blocks_[block].after;
  const Handle rest = add_block({left, block, after, pool, false});
  if (after != kNone) blocks_[after].before = rest;
  blocks_[block].bytes = bytes;
  blocks_[block].after = rest;
  Pool& of = pools_[static_cast<std::size_t>(pool)];
  if (of.last == block) of.last = rest;
  set_free(rest);
}

void CachingAllocator::set_free(Handle block) {
  blocks_[block].free = true;
  pools_[static_cast<std::size_t>(blocks_[block].pool)].free.insert({blocks_[block].bytes, block});
}

void CachingAllocator::take(Handle block) {
  blocks_[block].free = false;
  pools_[static_cast<std::size_t>(blocks_[block].pool)].free.erase({blocks_[block].bytes, block});
}

CachingAllocator::Handle CachingAllocator::join(Handle first, Handle second) {
  blocks_[first].bytes += blocks_[second].bytes;
  blocks_[first].after = blocks_[second].after;
  if (const Handle after = blocks_[second].after; after != kNone) blocks_[after].before = first;
  Pool& of = pools_[static_cast<std::size_t>(blocks_[first].pool)];
  if (of.last == second) of.last = first;
  unused_.push_back(second);
  return first;
}

}  // namespace orrery
