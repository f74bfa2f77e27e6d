// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sim/serving/scheduler.h"

namespace orrery {

/// Engines that set the cache of a whole answer aside before its request joins, so that none is
/// ever sent back: what they have in common.
struct WholeAnswers : SchedulerConfig {
  WholeAnswers(std::string of, std::int64_t seqs) : max_num_seqs(seqs) { kind = std::move(of); }

  std::unique_ptr<Scheduler> make() const override;
  EngineMemory memory() const override {
    return {EngineMemory::Of::kDevice,
            memory_share,
            max_prefill_tokens,
            max_num_seqs,
            num_gpu_blocks,
            kSlotTokens,
            false};
  }

  static constexpr std::int64_t kSlotTokens = 1;  ///< the cache is set aside by the token

  std::int64_t max_num_seqs, max_prefill_tokens = 8192, num_gpu_blocks = 0;
  double memory_share = 0.9;
};

/// The first that waits joins with blocks for its prompt and its whole answer. False: nobody waits,
/// or there is no room.
inline bool join_for_good(Queue& queue, KvPool& pool) {
  if (queue.waiting.empty()) return false;
  RequestState& first = queue.waiting.front();
  const std::int64_t longest = first.request.prompt + first.request.output - 1;
  if (!pool.grow(first, longest - first.cached)) return false;
  queue.running.push_back(std::move(first));
  queue.waiting.pop_front();
  return true;
}

/// Requests join between iterations, first come first served, with their prompts whole and with
/// room for whole answers (Yu et al. 2022, "Orca", algorithm 1), or only once all have left.
class IterationScheduler final : public Scheduler {
 public:
  /// @param closed nobody joins a batch that runs
  explicit IterationScheduler(std::int64_t most, bool closed = false)
      : most_(static_cast<std::size_t>(most)), closed_(closed) {}

  void admit(Queue& queue, KvPool& pool, Batch& out) override {
    out.shares.clear();
    const bool open = !closed_ || queue.running.empty();
    while (open && queue.running.size() < most_ && join_for_good(queue, pool)) continue;
    for (std::size_t i = 0; i < queue.running.size(); ++i)
      out.shares.push_back({i, queue.running[i].missing()});
  }

 private:
  std::size_t most_;
  bool closed_;
};

inline std::unique_ptr<Scheduler> WholeAnswers::make() const {
  return std::make_unique<IterationScheduler>(max_num_seqs);
}

template <class T>
config::Schema<T> whole_answers_schema(const std::string& kind, const std::string& help) {
  using config::between;
  config::Schema<T> schema = engine_schema<T>(kind, help);
  schema
      .optional("max_num_seqs", static_cast<std::int64_t T::*>(&WholeAnswers::max_num_seqs),
                "sequences of a batch at most", between(1, 1e6))
      .optional("max_prefill_tokens",
                static_cast<std::int64_t T::*>(&WholeAnswers::max_prefill_tokens),
                "tokens of prompts in an iteration that memory is kept for", between(1, 1e7))
      .optional("num_gpu_blocks", static_cast<std::int64_t T::*>(&WholeAnswers::num_gpu_blocks),
                "tokens of the cache; 0: what memory is left for", between(0, 1e12))
      .optional("memory_share", static_cast<double T::*>(&WholeAnswers::memory_share),
                "share of the device memory for weights, activations and cache", between(0.01, 1));
  return schema;
}

}  // namespace orrery
