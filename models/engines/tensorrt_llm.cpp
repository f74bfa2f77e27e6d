// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "models/engines/rank_memory.h"
#include "sim/serving/scheduler.h"

namespace orrery {

/// Which requests TensorRT-LLM lets into the cache.
enum class CapacityPolicy {
  kGuaranteedNoEvict,  ///< those that surely end: blocks for whole answers are set aside
  kMaxUtilization,     ///< all that fit now; the last is paused where blocks run out
};

namespace config {
template <>
struct EnumNames<CapacityPolicy> {
  static constexpr std::pair<CapacityPolicy, const char*> values[] = {
      {CapacityPolicy::kGuaranteedNoEvict, "GUARANTEED_NO_EVICT"},
      {CapacityPolicy::kMaxUtilization, "MAX_UTILIZATION"}};
};
}  // namespace config

namespace {

/// Prompts of data parallel ranks that go into iterations together (AttentionDpConfig).
struct AttentionDpConfig {
  bool enable_balance = false;
  std::int64_t timeout_iters = 50, batching_wait_iters = 10;

  static const config::Schema<AttentionDpConfig>& schema() {
    using config::between;
    using A = AttentionDpConfig;
    static const auto schema =
        config::Schema<A>("attention_dp_config", "prompts of data parallel ranks")
            .optional("enable_balance", &A::enable_balance,
                      "whether prompts wait until every rank has one")
            .optional("timeout_iters", &A::timeout_iters,
                      "iterations after which they wait no longer", between(0, 1e6))
            .optional("batching_wait_iters", &A::batching_wait_iters,
                      "iterations that they wait for more once every rank has one",
                      between(0, 1e6));
    return schema;
  }
};

/// Which batches of answers run as captured graphs (CudaGraphConfig).
struct CudaGraphConfig {
  bool enable_padding = false;
  std::vector<int> batch_sizes;

  static const config::Schema<CudaGraphConfig>& schema() {
    using C = CudaGraphConfig;
    static const auto schema =
        config::Schema<C>("cuda_graph_config", "decode batches that were captured as graphs")
            .optional("enable_padding", &C::enable_padding,
                      "whether other batches run the next larger graph; otherwise their kernels "
                      "are launched one by one")
            .optional("batch_sizes", &C::batch_sizes,
                      "sequences of each graph, ascending; the last that max_batch_size cuts off "
                      "becomes it. None: every batch has a graph of its own",
                      config::between(1, 1e6));
    return schema;
  }
};

/// Keys of TensorRT-LLM. Its defaults are in configs/software/tensorrt_llm_*.yaml; 0, 1 and false
/// stand for them here.
struct TensorrtLlm final : SchedulerConfig {
  TensorrtLlm() {
    kind = "tensorrt_llm";
    version = "1.2";
  }

  std::unique_ptr<RanksPolicy> ranks_policy() const override;

  std::unique_ptr<Scheduler> make() const override;
  EngineOverheads overheads() const override { return rank_memory; }
  EngineMemory memory() const override {
    return {EngineMemory::Of::kLeftOver,
            free_gpu_memory_fraction,
            max_num_tokens,
            max_batch_size,
            max_tokens / tokens_per_block,
            tokens_per_block,
            enable_block_reuse,
            mamba_state_cache_interval};
  }

  /// The smallest graph that holds a batch (pyexecutor/model_engine.py,
  /// _filter_cuda_graph_batch_sizes). A batch that no graph holds is not padded.
  std::int64_t padded(std::int64_t tokens, bool decodes) const override {
    const std::vector<int>& sizes = cuda_graph_config.batch_sizes;
    if (!decodes || !cuda_graph_config.enable_padding || tokens > max_batch_size) return tokens;
    const auto least = std::lower_bound(sizes.begin(), sizes.end(), tokens);
    return least == sizes.end() ? tokens : std::min<std::int64_t>(*least, max_batch_size);
  }

  bool runs_graph(std::int64_t tokens, bool decodes) const override {
    const std::vector<int>& sizes = cuda_graph_config.batch_sizes;
    if (!decodes || sizes.empty()) return decodes;
    const std::int64_t run = padded(tokens, decodes);
    return run == max_batch_size || std::binary_search(sizes.begin(), sizes.end(), run);
  }

  TensorrtLlmMemory rank_memory;
  CapacityPolicy capacity_scheduler_policy = CapacityPolicy::kGuaranteedNoEvict;
  std::int64_t max_batch_size = 0, max_num_tokens = 0, tokens_per_block = 1, max_tokens = 0;
  bool enable_chunked_prefill = false, enable_block_reuse = false,
       disable_overlap_scheduler = false;
  std::int64_t mamba_state_cache_interval = 0;
  double free_gpu_memory_fraction = 0;
  AttentionDpConfig attention_dp_config;
  CudaGraphConfig cuda_graph_config;
  std::int64_t batch_wait_timeout_iters = 0;
  double batch_wait_max_tokens_ratio = 0;

  static const config::Schema<TensorrtLlm>& schema() {
    using config::between;
    using T = TensorrtLlm;
    static const config::Schema<T> schema =
        engine_schema<T>("tensorrt_llm", "in-flight batching of TensorRT-LLM")
            .optional("capacity_scheduler_policy", &T::capacity_scheduler_policy,
                      "GUARANTEED_NO_EVICT: who joins has blocks to its end; MAX_UTILIZATION: who "
                      "fits now joins, and the last is paused where blocks run out")
            .optional("max_batch_size", &T::max_batch_size, "requests that run at a time at most",
                      between(1, 1e6))
            .optional("max_num_tokens", &T::max_num_tokens, "new tokens of an iteration at most",
                      between(1, 1e7))
            .optional("tokens_per_block", &T::tokens_per_block, "tokens of a block",
                      between(1, 4096))
            .optional("max_tokens", &T::max_tokens,
                      "tokens of the cache; 0: what memory is left for", between(0, 1e12))
            .optional("enable_chunked_prefill", &T::enable_chunked_prefill,
                      "whether a prompt may enter in pieces")
            .optional("enable_block_reuse", &T::enable_block_reuse,
                      "whether blocks of equal prefixes are kept and shared")
            .optional("disable_overlap_scheduler", &T::disable_overlap_scheduler,
                      "whether the host prepares no iteration while devices run the one before")
            .optional("memory", &T::rank_memory, kRankMemoryHelp)
            .derive([](T& t) { t.host.overlapped = !t.disable_overlap_scheduler; })
            .optional("attention_dp_config", &T::attention_dp_config,
                      "how data parallel ranks wait for each other's prompts")
            .optional("cuda_graph_config", &T::cuda_graph_config,
                      "decode batches that were captured as graphs")
            .check(
                "batch_sizes must ascend",
                [](const T& t) {
                  const std::vector<int>& sizes = t.cuda_graph_config.batch_sizes;
                  return std::is_sorted(sizes.begin(), sizes.end());
                },
                "cuda_graph_config.batch_sizes")
            .optional("batch_wait_timeout_iters", &T::batch_wait_timeout_iters,
                      "decode iterations that prompts of a single rank wait at most for more of "
                      "them",
                      between(0, 1e6))
            .optional("batch_wait_max_tokens_ratio", &T::batch_wait_max_tokens_ratio,
                      "share of max_num_tokens with which an iteration no longer waits",
                      between(0, 1))
            .optional("mamba_state_cache_interval", &T::mamba_state_cache_interval,
                      "tokens from one kept state of recurrent layers to the next, with "
                      "enable_block_reuse (256 in the package's hybrid cache manager)",
                      between(1, 1e6))
            .optional("free_gpu_memory_fraction", &T::free_gpu_memory_fraction,
                      "share of the device memory, less weights and activations, for the cache",
                      between(0.01, 1));
    return schema;
  }
};

/// In-flight batching of TensorRT-LLM (capacityScheduler.cpp, microBatchScheduler.cpp): the policy
/// says who is in the cache; of those, tokens of answers go into the iteration first, then prompts
/// as far as max_num_tokens reaches.
class TensorrtLlmScheduler final : public Scheduler {
 public:
  explicit TensorrtLlmScheduler(const TensorrtLlm& rules) : rules_(rules) {}

  void admit(Queue& queue, KvPool& pool, Batch& out) override {
    out.shares.clear();
    left_ = rules_.max_num_tokens;
    const std::size_t before = queue.running.size();
    decode(queue, pool, out);
    const bool paused = queue.running.size() < before;
    if (!paused || out.shares.empty()) prompts(queue, pool, out);
  }

 private:
  /// Blocks that a request needs yet until its end.
  std::int64_t unheld(const RequestState& p, const KvPool& pool) const {
    const std::int64_t tokens = p.request.prompt + p.request.output - 1;
    return pool.blocks_of(tokens) - pool.blocks_of(p.cached) + pool.windows_of(tokens, 1) -
           p.windows;
  }

  bool may_join(const RequestState& first, const Queue& queue, const KvPool& pool) const {
    if (rules_.capacity_scheduler_policy == CapacityPolicy::kMaxUtilization) return true;
    std::int64_t needed = unheld(first, pool);
    for (const RequestState& p : queue.running) needed += unheld(p, pool);
    return needed <= pool.available();
  }

  void decode(Queue& queue, KvPool& pool, Batch& out) {
    for (std::size_t i = 0; i < queue.running.size(); ++i) {
      if (!queue.running[i].decodes()) continue;
      while (i < queue.running.size() && !pool.grow(queue.running[i], 1)) preempt_last(queue, pool);
      if (i == queue.running.size()) return;
      if (left_ == 0) continue;
      out.shares.push_back({i, 1});
      left_ = std::max<std::int64_t>(0, left_ - 1 - pool.draft_tokens());
    }
  }

  /// Prompts that have begun to enter go on.
  void go_on(Queue& queue, KvPool& pool, Batch& out) {
    for (std::size_t i = 0; i < queue.running.size(); ++i) {
      RequestState& p = queue.running[i];
      if (p.decodes()) continue;
      const std::int64_t tokens = piece(p);
      if (tokens == 0 || !pool.grow(p, tokens)) continue;
      out.shares.push_back({i, tokens});
      left_ -= std::min(tokens, left_);
      if (const auto next = pool.next_piece(p)) filled_.insert(*next);
    }
  }

  /// A prompt whose next piece another one fills in this iteration is passed over, so that it finds
  /// the piece later (capacityScheduler.cpp, beneficialToSkip).
  void prompts(Queue& queue, KvPool& pool, Batch& out) {
    filled_.clear();
    go_on(queue, pool, out);
    const auto most = static_cast<std::size_t>(rules_.max_batch_size);
    std::vector<RequestState> passed_over;
    while (!queue.waiting.empty() && queue.running.size() < most) {
      RequestState& first = queue.waiting.front();
      pool.find_prefix(first);
      const auto next = pool.next_piece(first);
      if (next && filled_.contains(*next)) {
        pool.put_back(first);
        passed_over.push_back(std::move(first));
        queue.waiting.pop_front();
        continue;
      }
      const std::int64_t tokens = piece(first);
      if (tokens == 0 || !may_join(first, queue, pool) || !pool.grow(first, tokens)) {
        pool.put_back(first);
        break;
      }
      out.shares.push_back({queue.running.size(), tokens});
      left_ -= std::min(tokens, left_);
      queue.running.push_back(std::move(first));
      queue.waiting.pop_front();
      if (next) filled_.insert(*next);
    }
    queue.waiting.insert(queue.waiting.begin(), std::make_move_iterator(passed_over.begin()),
                         std::make_move_iterator(passed_over.end()));
  }

  /// How many tokens of a prompt may enter now.
  std::int64_t piece(const RequestState& p) const {
    if (rules_.enable_chunked_prefill) return std::min(p.missing(), left_);
    // A cache that was dropped may need more at once than any prompt.
    const bool alone = left_ == rules_.max_num_tokens && p.produced > 0;
    return p.missing() <= left_ || alone ? p.missing() : 0;
  }

  const TensorrtLlm& rules_;
  std::int64_t left_ = 0;
  std::set<std::uint64_t> filled_;  ///< next pieces of the prompts of the iteration
};

/// When prompts wait for others (pyexecutor/scheduler, _balance_adp_context_requests and
/// _apply_batch_waiting): with several ranks until all have some, with one until an iteration is
/// full enough.
class TensorrtLlmWaits final : public RanksPolicy {
 public:
  explicit TensorrtLlmWaits(const TensorrtLlm& rules) : rules_(rules) {}
  bool puts_off_prompts(std::span<const BatchShape> ranks) override {
    return ranks.size() > 1 ? balances(ranks) : waits(ranks.front());
  }

 private:
  bool balances(std::span<const BatchShape> ranks) {
    const AttentionDpConfig& rules = rules_.attention_dp_config;
    if (!rules.enable_balance) return false;
    const auto all = [&](auto has) { return std::all_of(ranks.begin(), ranks.end(), has); };
    const bool decodes = all([](const BatchShape& s) { return s.sequences > 0; });
    const bool prompts = all([](const BatchShape& s) { return !s.chunks.empty(); });
    const bool free = all([&](const BatchShape& s) { return s.sequences < rules_.max_batch_size; });
    if (prompts && free) {
      waited_ = 0;
      if (!decodes) return false;
      const bool more = waited_for_more_ < rules.batching_wait_iters;
      waited_for_more_ = more ? waited_for_more_ + 1 : 0;
      return more;
    }
    if (++waited_ < rules.timeout_iters && decodes) return true;
    waited_ = 0;
    return false;
  }

  bool waits(const BatchShape& shape) {
    if (shape.chunks.empty() || shape.sequences == 0) return false;
    std::int64_t tokens = shape.tokens();
    for (const Chunk& chunk : shape.chunks) tokens += chunk.context;
    const double full =
        rules_.batch_wait_max_tokens_ratio * static_cast<double>(rules_.max_num_tokens);
    const bool more =
        waited_ < rules_.batch_wait_timeout_iters && static_cast<double>(tokens) < full;
    waited_ = more ? waited_ + 1 : 0;
    return more;
  }

  const TensorrtLlm& rules_;
  std::int64_t waited_ = 0, waited_for_more_ = 0;
};

std::unique_ptr<Scheduler> TensorrtLlm::make() const {
  return std::make_unique<TensorrtLlmScheduler>(*this);
}

std::unique_ptr<RanksPolicy> TensorrtLlm::ranks_policy() const {
  const bool waits = batch_wait_timeout_iters > 0 || batch_wait_max_tokens_ratio > 0;
  if (!waits && !attention_dp_config.enable_balance) return nullptr;
  return std::make_unique<TensorrtLlmWaits>(*this);
}

const config::Registered<SchedulerConfig>::Add<TensorrtLlm> added_tensorrt_llm(
    "tensorrt_llm", "in-flight batching of TensorRT-LLM");

}  // namespace
}  // namespace orrery
