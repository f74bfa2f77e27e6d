// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "models/engines/rank_memory.h"
#include "sim/serving/scheduler.h"
#include "sim/serving/size_steps.h"

namespace orrery {

/// Whether vLLM's host prepares an iteration while devices run the one before.
enum class AsyncScheduling : std::uint8_t { kAuto, kOn, kOff };

/// In which order requests of vLLM's engine come to their turn.
enum class SchedulingPolicy : std::uint8_t { kFcfs, kPriority };

namespace config {
template <>
struct EnumNames<AsyncScheduling> {
  using enum AsyncScheduling;
  static constexpr std::pair<AsyncScheduling, const char*> values[] = {
      {kAuto, "auto"}, {kOn, "true"}, {kOff, "false"}};
};
template <>
struct EnumNames<SchedulingPolicy> {
  static constexpr std::pair<SchedulingPolicy, const char*> values[] = {
      {SchedulingPolicy::kFcfs, "fcfs"}, {SchedulingPolicy::kPriority, "priority"}};
};
}  // namespace config

namespace {

/// Keys of vLLM. Defaults that depend on its version are in configs/software/vllm_*.yaml, those of
/// the device and its use among them; 0 and 1 stand for them here.
struct Vllm final : SchedulerConfig {
  Vllm() {
    kind = "vllm";
    version = "0.11";
  }

  std::unique_ptr<Scheduler> make() const override;
  EngineOverheads overheads() const override { return rank_memory; }
  EngineMemory memory() const override {
    return {EngineMemory::Of::kDevice,
            gpu_memory_utilization,
            max_num_batched_tokens,
            max_num_seqs,
            num_gpu_blocks,
            block_size,
            prefix_caching,
            mamba_block_size,
            true,
            disable_hybrid_kv_cache_manager};
  }

  std::int64_t padded(std::int64_t tokens, bool decodes) const override {
    return runs_graph(tokens, decodes) ? next_size(cudagraph_sizes, tokens) : tokens;
  }
  bool runs_graph(std::int64_t tokens, bool decodes) const override;
  bool serves_adapters() const override { return true; }

  VllmMemory rank_memory;
  SchedulingPolicy scheduling_policy = SchedulingPolicy::kFcfs;
  bool enforce_eager = false;
  std::int64_t max_cudagraph_capture_size = 0, cudagraph_limit = 0;
  std::vector<SizeStep> cudagraph_sizes;
  AsyncScheduling async_scheduling = AsyncScheduling::kAuto;
  std::int64_t max_num_seqs = 0, max_num_batched_tokens = 0;
  std::int64_t long_prefill_token_threshold = 0;
  bool enable_chunked_prefill = true, scheduler_reserve_full_isl = false;
  bool reserve_whole_windows = false;
  double watermark = 0;
  bool prefix_caching = true, disable_hybrid_kv_cache_manager = false;
  std::int64_t block_size = 1, num_gpu_blocks = 0, mamba_block_size = 0;
  double gpu_memory_utilization = 0;

  /// Keys of the batch and of its graphs.
  static config::Schema<Vllm> batch_keys() {
    using config::between;
    return engine_schema<Vllm>("vllm", "continuous batching of vLLM's V1 engine")
        .optional("memory", &Vllm::rank_memory, kRankMemoryHelp)
        .optional("async_scheduling", &Vllm::async_scheduling,
                  "whether the host prepares an iteration while devices run the one before")
        .alias("moe_backend", "kernels.experts")
        .optional("scheduling_policy", &Vllm::scheduling_policy,
                  "order of requests: as they come, or by their priority")
        .optional("enforce_eager", &Vllm::enforce_eager,
                  "whether no graphs are captured, so that no batch is padded to one of them")
        .optional("max_cudagraph_capture_size", &Vllm::max_cudagraph_capture_size,
                  "most tokens of a captured graph; smaller batches run the next of "
                  "cudagraph_sizes; 0 stands for twice max_num_seqs, at most cudagraph_limit",
                  between(0, 1e6))
        .optional("cudagraph_limit", &Vllm::cudagraph_limit,
                  "most tokens of a graph that vLLM captures by itself", between(1, 1e6))
        .optional("cudagraph_sizes", &Vllm::cudagraph_sizes, "tokens of the captured graphs")
        .optional("max_num_seqs", &Vllm::max_num_seqs, "requests that run at a time at most",
                  between(1, 1e6))
        .optional("max_num_batched_tokens", &Vllm::max_num_batched_tokens,
                  "new tokens of an iteration at most", between(1, 1e7))
        .optional(
            "long_prefill_token_threshold", &Vllm::long_prefill_token_threshold,
            "new tokens of one request in an iteration at most; 0 allows as many as the budget "
            "has",
            between(0, 1e7))
        .optional("enable_chunked_prefill", &Vllm::enable_chunked_prefill,
                  "whether a prompt may enter in pieces")
        .optional("scheduler_reserve_full_isl", &Vllm::scheduler_reserve_full_isl,
                  "whether a request joins only when the cache has room for its whole prompt "
                  "and the output tokens it has produced; false: for its first piece")
        .optional("reserve_whole_windows", &Vllm::reserve_whole_windows,
                  "whether that room has whole prompts of layers with a window, too; otherwise "
                  "a window and the tokens of an iteration")
        .optional("watermark", &Vllm::watermark,
                  "share of the blocks that must stay free when a request joins running ones",
                  between(0, 1));
  }

  static const config::Schema<Vllm>& schema() {
    using config::between;
    static const config::Schema<Vllm> schema =
        batch_keys()
            .optional("prefix_caching", &Vllm::prefix_caching,
                      "whether blocks of equal prefixes are kept and shared")
            .optional("disable_hybrid_kv_cache_manager", &Vllm::disable_hybrid_kv_cache_manager,
                      "whether layers with a window keep the whole sequence, as those without do")
            .optional("block_size", &Vllm::block_size, "tokens of a block", between(1, 4096))
            .optional("mamba_block_size", &Vllm::mamba_block_size,
                      "tokens from one kept state of recurrent layers to the next, with "
                      "prefix_caching; 0: a block, whose keys and values of a layer are made as "
                      "large as the states of one (platforms/interface.py)",
                      between(0, 1e6))
            .optional("num_gpu_blocks", &Vllm::num_gpu_blocks,
                      "blocks of the cache; 0: what memory is left for", between(0, 1e12))
            .optional("gpu_memory_utilization", &Vllm::gpu_memory_utilization,
                      "share of the device memory for weights, activations and blocks",
                      between(0.01, 1))
            .check(
                "without chunks a prompt must fit in max_num_batched_tokens whole, which "
                "long_prefill_token_threshold forbids",
                [](const Vllm& v) {
                  return v.enable_chunked_prefill || v.long_prefill_token_threshold == 0;
                },
                "long_prefill_token_threshold")
            .check(
                kSizeStepsMustAscend, [](const Vllm& v) { return ascends(v.cudagraph_sizes); },
                "cudagraph_sizes")
            .derive(
                [](Vllm& v) { v.host.overlapped = v.async_scheduling == AsyncScheduling::kOn; });
    return schema;
  }
};

/// Batches with prompts run as graphs of all but attention, which is launched between them.
bool Vllm::runs_graph(std::int64_t tokens, bool /*decodes*/) const {
  const std::int64_t most = max_cudagraph_capture_size > 0
                                ? max_cudagraph_capture_size
                                : std::min(2 * max_num_seqs, cudagraph_limit);
  return !enforce_eager && tokens <= most;
}

/// The scheduler of vLLM's V1 engine (vllm/v1/core/sched/scheduler.py): a budget of new tokens goes
/// first to requests that run, in order of their coming, then to those that wait. Where no block is
/// left, the request that came last is dropped and computes its cache again later; nobody joins in
/// such an iteration. By priority, those that wait join in its order, and who comes last in it is
/// dropped.
class VllmScheduler final : public Scheduler {
 public:
  explicit VllmScheduler(const Vllm& rules) : rules_(rules) {}

  void admit(Queue& queue, KvPool& pool, Batch& out) override {
    out.shares.clear();
    budget_ = rules_.max_num_batched_tokens;
    if (run(queue, pool, out)) join(queue, pool, out);
  }

 private:
  std::int64_t capped(std::int64_t tokens) const {
    const std::int64_t threshold = rules_.long_prefill_token_threshold;
    return std::min(threshold > 0 ? std::min(tokens, threshold) : tokens, budget_);
  }

  /// Whether all that run found room.
  bool run(Queue& queue, KvPool& pool, Batch& out) {
    bool all = true;
    std::size_t i = 0;
    while (i < queue.running.size() && budget_ > 0) {
      const std::int64_t tokens = capped(queue.running[i].missing());
      bool there = true;
      while (there && !pool.grow(queue.running[i], tokens)) {
        const std::size_t dropped = drop_one(queue, pool, out);
        there = dropped != i;
        if (dropped < i) --i;
        all = false;
      }
      if (!there) continue;
      out.shares.push_back({i, tokens});
      budget_ -= tokens + (queue.running[i].decodes() ? pool.draft_tokens() : 0);
      ++i;
    }
    return all;
  }

  /// Who has an adapter that would be one too many for the iteration is passed over, and waits on
  /// in front of the others (0.11: scheduled_loras, skipped_waiting_requests).
  void join(Queue& queue, KvPool& pool, Batch& out) {
    const auto most = static_cast<std::size_t>(rules_.max_num_seqs);
    AdapterSet adapters;
    for (const Batch::Share& share : out.shares)
      adapters.add(queue.running[share.running].request.adapter);
    std::vector<RequestState> passed_over;
    while (!queue.waiting.empty() && budget_ > 0 && queue.running.size() < most) {
      bring_first(queue);
      const std::int32_t adapter = queue.waiting.front().request.adapter;
      if (adapter >= 0 && adapters.size() >= queue.max_loras && !adapters.contains(adapter)) {
        passed_over.push_back(std::move(queue.waiting.front()));
        queue.waiting.pop_front();
        continue;
      }
      if (!join_first(queue, pool, out)) break;
      adapters.add(adapter);
    }
    queue.waiting.insert(queue.waiting.begin(), std::make_move_iterator(passed_over.begin()),
                         std::make_move_iterator(passed_over.end()));
  }

  /// The first that waits joins. False: it cannot.
  bool join_first(Queue& queue, KvPool& pool, Batch& out) {
    RequestState& first = queue.waiting.front();
    pool.find_prefix(first);
    const std::int64_t tokens = capped(first.missing());
    const bool whole = rules_.enable_chunked_prefill || tokens == first.missing();
    if (!whole || !has_room(first, tokens, queue, pool) || !pool.grow(first, tokens)) {
      pool.put_back(first);
      return false;
    }
    out.shares.push_back({queue.running.size(), tokens});
    queue.running.push_back(std::move(first));
    queue.waiting.pop_front();
    budget_ -= tokens;
    return true;
  }

  /// Whether the cache has room for the next piece of the first that waits, and, as the rules ask,
  /// for all that it has to compute (v1/core/kv_cache_manager.py, allocate_slots). Prefix blocks
  /// that it found are held already; kept blocks that nobody holds count as free.
  bool has_room(const RequestState& first, std::int64_t tokens, const Queue& queue,
                const KvPool& pool) const {
    const double kept_free = queue.running.empty() ? 0 : rules_.watermark;
    const auto spare = static_cast<std::int64_t>(kept_free * static_cast<double>(pool.blocks()));
    const std::int64_t room = pool.available() - spare;
    if (pool.lacking(first, tokens) > room) return false;
    if (!rules_.scheduler_reserve_full_isl) return true;
    const std::int64_t all = first.missing();
    const std::int64_t step = rules_.reserve_whole_windows ? all : rules_.max_num_batched_tokens;
    return pool.lacking(first, all, std::min(all, step)) <= room;
  }

  /// Drops who has the last turn: its cache, and what it was to do in this iteration.
  /// @return its place
  std::size_t drop_one(Queue& queue, KvPool& pool, Batch& out) {
    auto victim = queue.running.end() - 1;
    if (rules_.scheduling_policy == SchedulingPolicy::kPriority)
      victim = std::max_element(queue.running.begin(), queue.running.end(),
                                [](const RequestState& a, const RequestState& b) {
                                  return goes_before(a.request, b.request);
                                });
    const auto place = static_cast<std::size_t>(victim - queue.running.begin());
    std::rotate(victim, victim + 1, queue.running.end());
    preempt_last(queue, pool);
    std::erase_if(out.shares, [&](const Batch::Share& share) {
      if (share.running == place) budget_ += share.tokens;
      return share.running == place;
    });
    for (Batch::Share& share : out.shares)
      if (share.running > place) --share.running;
    return place;
  }

  /// Brings the waiting request whose turn it is to the front.
  void bring_first(Queue& queue) const {
    if (rules_.scheduling_policy == SchedulingPolicy::kFcfs) return;
    const auto first = std::min_element(queue.waiting.begin(), queue.waiting.end(),
                                        [](const RequestState& a, const RequestState& b) {
                                          return goes_before(a.request, b.request);
                                        });
    std::rotate(queue.waiting.begin(), first, first + 1);
  }

  const Vllm& rules_;
  std::int64_t budget_ = 0;
};

std::unique_ptr<Scheduler> Vllm::make() const { return std::make_unique<VllmScheduler>(*this); }

const config::Registered<SchedulerConfig>::Add<Vllm> added_vllm(
    "vllm", "continuous batching of vLLM's V1 engine");

}  // namespace
}  // namespace orrery
