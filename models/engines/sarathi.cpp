// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "sim/serving/scheduler.h"

namespace orrery {
namespace {

/// Stall-free batching (Agrawal et al. 2024, "Sarathi-Serve", algorithm 3): all decodes, then the
/// prompts that have begun, then new ones, within a budget of tokens that keeps iterations short.
/// The blocks of a whole prompt are taken when it begins.
class SarathiScheduler final : public Scheduler {
 public:
  SarathiScheduler(std::int64_t chunk, std::int64_t most)
      : chunk_(chunk), most_(static_cast<std::size_t>(most)) {}

  void admit(Queue& queue, KvPool& pool, Batch& out) override {
    out.shares.clear();
    left_ = chunk_;
    decode(queue, pool, out);
    for (std::size_t i = 0; i < queue.running.size() && left_ > 0; ++i)
      if (!queue.running[i].decodes()) enter(queue, i, out);
    while (left_ > 0 && queue.running.size() < most_ && !queue.waiting.empty()) {
      if (!pool.grow(queue.waiting.front(), queue.waiting.front().missing())) return;
      queue.running.push_back(std::move(queue.waiting.front()));
      queue.waiting.pop_front();
      enter(queue, queue.running.size() - 1, out);
    }
  }

 private:
  /// Decodes are never left out: they may exceed the budget.
  void decode(Queue& queue, KvPool& pool, Batch& out) {
    for (std::size_t i = 0; i < queue.running.size(); ++i) {
      if (!queue.running[i].decodes()) continue;
      while (i < queue.running.size() && !pool.grow(queue.running[i], 1)) preempt_last(queue, pool);
      if (i == queue.running.size()) return;
      out.shares.push_back({i, 1});
      left_ = std::max<std::int64_t>(left_ - 1 - pool.draft_tokens(), 0);
    }
  }

  void enter(const Queue& queue, std::size_t i, Batch& out) {
    const std::int64_t tokens = std::min(queue.running[i].missing(), left_);
    out.shares.push_back({i, tokens});
    left_ -= tokens;
  }

  std::int64_t chunk_, left_ = 0;
  std::size_t most_;
};

struct Sarathi final : SchedulerConfig {
  Sarathi() { kind = "sarathi"; }

  std::unique_ptr<Scheduler> make() const override {
    return std::make_unique<SarathiScheduler>(chunk_size, max_num_seqs);
  }
  EngineMemory memory() const override {
    return {EngineMemory::Of::kDevice,
            gpu_memory_utilization,
            chunk_size,
            max_num_seqs,
            num_gpu_blocks,
            block_size,
            false};
  }

  std::int64_t chunk_size = 512, max_num_seqs = 128, block_size = 16, num_gpu_blocks = 0;
  double gpu_memory_utilization = 0.9;

  static const config::Schema<Sarathi>& schema() {
    using config::between;
    static const config::Schema<Sarathi> schema =
        engine_schema<Sarathi>("sarathi", "stall-free batching with chunked prompts")
            .optional("chunk_size", &Sarathi::chunk_size, "tokens of an iteration", between(1, 1e7))
            .optional("max_num_seqs", &Sarathi::max_num_seqs, "requests that run at a time at most",
                      between(1, 1e6))
            .optional("block_size", &Sarathi::block_size, "tokens of a block", between(1, 4096))
            .optional("num_gpu_blocks", &Sarathi::num_gpu_blocks,
                      "blocks of the cache; 0: what memory is left for", between(0, 1e12))
            .optional("gpu_memory_utilization", &Sarathi::gpu_memory_utilization,
                      "share of the device memory for weights, activations and blocks",
                      between(0.01, 1));
    return schema;
  }
};

const config::Registered<SchedulerConfig>::Add<Sarathi> added_sarathi(
    "sarathi", "stall-free batching with chunked prompts");

}  // namespace
}  // namespace orrery
