// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <utility>

#include "sim/serving/scheduler.h"

namespace orrery {

/// When the scheduler of SGLang looks for new requests (srt/managers/scheduler_recv_skipper.py).
/// Those that come between two looks wait where it does not see them.
class Receiver {
 public:
  explicit Receiver(std::int64_t interval) : interval_(interval) {}

  /// Takes away those of the waiting requests that the scheduler does not see in this iteration.
  std::deque<RequestState> hide(Queue& queue, bool idle) {
    ++decodes_;
    const bool looks = interval_ <= 1 || idle || prompts_ || decodes_ >= interval_;
    if (looks) decodes_ = 0;
    std::deque<RequestState> hidden;
    while (!looks && queue.waiting.size() > seen_) {
      hidden.push_front(std::move(queue.waiting.back()));
      queue.waiting.pop_back();
    }
    return hidden;
  }
  /// Gives them back once the iteration is put together.
  void show(Queue& queue, std::deque<RequestState> hidden, const Batch& batch) {
    seen_ = queue.waiting.size();
    std::ranges::move(hidden, std::back_inserter(queue.waiting));
    prompts_ = std::ranges::any_of(batch.shares, [&](const Batch::Share& share) {
      return !queue.running[share.running].decodes();
    });
  }

 private:
  std::int64_t interval_;
  std::int64_t decodes_ = 0;  ///< iterations since the last look
  std::size_t seen_ = 0;      ///< requests that wait and have been seen
  bool prompts_ = false;      ///< whether the last iteration had prompts
};

}  // namespace orrery
