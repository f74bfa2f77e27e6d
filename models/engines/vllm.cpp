// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "models/engines/engine_version.h"
#include "sim/serving/scheduler.h"

namespace orrery {

/// Whether vLLM's host prepares an iteration while devices run the one before.
enum class AsyncScheduling : std::uint8_t { kAuto, kOn, kOff };

/// In which order requests of vLLM's engine come to their turn.
enum class SchedulingPolicy : std::uint8_t { kFcfs, kPriority };

enum class MoeBackend { kAuto, kMarlin };

namespace config {
template <>
struct EnumNames<AsyncScheduling> {
  static constexpr std::pair<AsyncScheduling, const char*> values[] = {
      {AsyncScheduling::kAuto, "auto"},
      {AsyncScheduling::kOn, "true"},
      {AsyncScheduling::kOff, "false"}};
};
template <>
struct EnumNames<SchedulingPolicy> {
  static constexpr std::pair<SchedulingPolicy, const char*> values[] = {
      {SchedulingPolicy::kFcfs, "fcfs"}, {SchedulingPolicy::kPriority, "priority"}};
};
template <>
struct EnumNames<MoeBackend> {
  static constexpr std::pair<MoeBackend, const char*> values[] = {{MoeBackend::kAuto, "auto"},
                                                                  {MoeBackend::kMarlin, "marlin"}};
};
}  // namespace config

namespace {

struct Vllm;

/// The first version that schedules asynchronously unless told otherwise (release notes).
constexpr std::pair<int, int> kFirstAsynchronous = {0, 14};

/// The scheduler of vLLM's V1 engine (vllm/v1/core/sched/scheduler.py): a budget of new tokens goes
/// first to requests that run, in order of their coming, then to those that wait. Where no block is
/// left, the request that came last is dropped and computes its cache again later; nobody joins in
/// such an iteration. By priority, those that wait join in its order, and who comes last in it is
/// dropped.
class VllmScheduler final : public Scheduler {
 public:
  explicit VllmScheduler(const Vllm& rules) : rules_(rules) {}
  void admit(Queue& queue, KvPool& pool, Batch& out) override;

 private:
  std::int64_t capped(std::int64_t tokens) const;
  bool run(Queue& queue, KvPool& pool, Batch& out);
  void join(Queue& queue, KvPool& pool, Batch& out);
  bool join_first(Queue& queue, KvPool& pool, Batch& out);
  std::size_t drop_one(Queue& queue, KvPool& pool, Batch& out);
  void bring_first(Queue& queue) const;

  const Vllm& rules_;
  std::int64_t budget_ = 0;
};

/// What `orrery calibrate --engine vllm` found.
HostCosts vllm_host(std::pair<int, int> version) {
  HostCosts host;
  // InferenceX's runs of gpt-oss-120b on B200 and of Llama-3.1-70B on H200; of the others, TTFT is
  // off by 24 % with it and 37 % without.
  host.request = Seconds(21.6e-3);
  host.launch = Seconds(1e-6);
  // Earlier versions, with the two above given: Qwen3-32B on H100 and Llama-3.1-70B on H200; of
  // others, TPOT is off by 10.6 % with it and 13.5 % without.
  if (version < kFirstAsynchronous) host.gap = Seconds(1.74e-3);
  return host;
}

struct Vllm final : SchedulerConfig {
  Vllm() {
    kind = "vllm";
    quant_fusion = false;
    host.by_version = true;
    decodes_by_stages = false;  // v1/worker/ubatching.py: it yields at exchanges
  }

  std::unique_ptr<Scheduler> make() const override {
    return std::make_unique<VllmScheduler>(*this);
  }
  EngineMemory memory() const override {
    return {EngineMemory::Of::kDevice,
            gpu_memory_utilization,
            max_num_batched_tokens,
            max_num_seqs,
            num_gpu_blocks,
            block_size,
            prefix_caching,
            mamba_block_size};
  }

  EngineFusions own_fusions() const override;
  std::int64_t padded(std::int64_t tokens, bool decodes) const override;
  bool runs_graph(std::int64_t tokens, bool decodes) const override;
  bool serves_adapters() const override { return true; }

  std::string version = "0.11";
  MoeBackend moe_backend = MoeBackend::kAuto;
  SchedulingPolicy scheduling_policy = SchedulingPolicy::kFcfs;
  bool enforce_eager = false;
  std::int64_t max_cudagraph_capture_size = 0;
  AsyncScheduling async_scheduling = AsyncScheduling::kAuto;
  std::int64_t max_num_seqs = 256, max_num_batched_tokens = 8192;
  std::int64_t long_prefill_token_threshold = 0;
  bool enable_chunked_prefill = true;
  bool prefix_caching = true;
  std::int64_t block_size = 16, num_gpu_blocks = 0, mamba_block_size = 0;
  double gpu_memory_utilization = 0.9;

  static const config::Schema<Vllm>& schema() {
    using config::between;
    static const config::Schema<Vllm> schema =
        engine_schema<Vllm>("vllm", "continuous batching of vLLM's V1 engine")
            .optional("version", &Vllm::version,
                      "version of vLLM, which says what async_scheduling is by itself")
            .optional("async_scheduling", &Vllm::async_scheduling,
                      "whether the host prepares an iteration while devices run the one before; "
                      "auto: from version 0.14 on")
            .optional("moe_backend", &Vllm::moe_backend,
                      "kernels of experts whose weights are widened (moe_backend; before, "
                      "VLLM_MXFP4_USE_MARLIN): those that were measured, or Marlin's")
            .optional("scheduling_policy", &Vllm::scheduling_policy,
                      "order of requests: as they come, or by their priority")
            .optional("enforce_eager", &Vllm::enforce_eager,
                      "whether no graphs are captured, so that no batch is padded to one of them")
            .optional("max_cudagraph_capture_size", &Vllm::max_cudagraph_capture_size,
                      "most tokens of a captured graph; smaller batches run the next of 1, 2, 4, "
                      "multiples of 8 to 256 and of 16 beyond; 0: twice max_num_seqs, at most 512",
                      between(0, 1e6))
            .optional("max_num_seqs", &Vllm::max_num_seqs, "requests that run at a time at most",
                      between(1, 1e6))
            .optional("max_num_batched_tokens", &Vllm::max_num_batched_tokens,
                      "new tokens of an iteration at most", between(1, 1e7))
            .optional("long_prefill_token_threshold", &Vllm::long_prefill_token_threshold,
                      "new tokens of one request in an iteration at most; 0: as many as the budget "
                      "has",
                      between(0, 1e7))
            .optional("enable_chunked_prefill", &Vllm::enable_chunked_prefill,
                      "whether a prompt may enter in pieces")
            .optional("prefix_caching", &Vllm::prefix_caching,
                      "whether blocks of equal prefixes are kept and shared")
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
                "expected a version such as 0.11",
                [](const Vllm& v) { return engine_version(v.version).has_value(); }, "version")
            .derive([](Vllm& v) {
              v.marlin = v.moe_backend == MoeBackend::kMarlin;
              if (v.host.by_version) v.host = vllm_host(engine_version(v.version).value());
              v.host.overlapped = v.async_scheduling == AsyncScheduling::kAuto
                                      ? engine_version(v.version).value() >= kFirstAsynchronous
                                      : v.async_scheduling == AsyncScheduling::kOn;
            });
    return schema;
  }
};

/// grouped_topk has a kernel that is on by itself from 0.11 on (VLLM_USE_FUSED_MOE_GROUPED_TOPK);
/// 0.27.1 is the version whose optimization level 2 was read with fuse_allreduce_rms
/// (config/vllm.py, which earlier levels leave off).
EngineFusions Vllm::own_fusions() const {
  const std::pair<int, int> which = engine_version(version).value();
  const auto from = [&which](std::pair<int, int> first) {
    return which >= first ? EngineSwitch::kOn : EngineSwitch::kOff;
  };
  return {from({0, 11}), from({0, 27}), EngineSwitch::kOff};
}

/// Batches with prompts run as graphs of all but attention, which is launched between them.
bool Vllm::runs_graph(std::int64_t tokens, bool /*decodes*/) const {
  constexpr std::int64_t kMostByItself = 512;
  const std::int64_t most = max_cudagraph_capture_size > 0
                                ? max_cudagraph_capture_size
                                : std::min(2 * max_num_seqs, kMostByItself);
  return !enforce_eager && tokens <= most;
}

/// Sizes of vllm/config/compilation.py.
std::int64_t Vllm::padded(std::int64_t tokens, bool decodes) const {
  constexpr std::int64_t kFine = 256;
  if (!runs_graph(tokens, decodes) || tokens <= 2) return tokens;
  if (tokens <= 4) return 4;
  const std::int64_t step = tokens <= kFine ? 8 : 16;
  return (tokens + step - 1) / step * step;
}

std::int64_t VllmScheduler::capped(std::int64_t tokens) const {
  const std::int64_t threshold = rules_.long_prefill_token_threshold;
  return std::min(threshold > 0 ? std::min(tokens, threshold) : tokens, budget_);
}

/// Drops who has the last turn: its cache, and what it was to do in this iteration.
/// @return its place
std::size_t VllmScheduler::drop_one(Queue& queue, KvPool& pool, Batch& out) {
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

/// Whether all that run found room.
bool VllmScheduler::run(Queue& queue, KvPool& pool, Batch& out) {
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
    budget_ -= tokens + (queue.running[i].decodes() ? pool.guesses() : 0);
    ++i;
  }
  return all;
}

/// Brings the waiting request whose turn it is to the front.
void VllmScheduler::bring_first(Queue& queue) const {
  if (rules_.scheduling_policy == SchedulingPolicy::kFcfs) return;
  const auto first = std::min_element(queue.waiting.begin(), queue.waiting.end(),
                                      [](const RequestState& a, const RequestState& b) {
                                        return goes_before(a.request, b.request);
                                      });
  std::rotate(queue.waiting.begin(), first, first + 1);
}

/// The first that waits joins. False: it cannot.
bool VllmScheduler::join_first(Queue& queue, KvPool& pool, Batch& out) {
  RequestState& first = queue.waiting.front();
  pool.find_prefix(first);
  const std::int64_t tokens = capped(first.missing());
  const bool whole = rules_.enable_chunked_prefill || tokens == first.missing();
  if (!whole || !pool.grow(first, tokens)) {
    pool.put_back(first);
    return false;
  }
  out.shares.push_back({queue.running.size(), tokens});
  queue.running.push_back(std::move(first));
  queue.waiting.pop_front();
  budget_ -= tokens;
  return true;
}

/// Who has an adapter that would be one too many for the iteration is passed over, and waits on in
/// front of the others (0.11: scheduled_loras, skipped_waiting_requests).
void VllmScheduler::join(Queue& queue, KvPool& pool, Batch& out) {
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

void VllmScheduler::admit(Queue& queue, KvPool& pool, Batch& out) {
  out.shares.clear();
  budget_ = rules_.max_num_batched_tokens;
  if (run(queue, pool, out)) join(queue, pool, out);
}

const config::Registered<SchedulerConfig>::Add<Vllm> added_vllm(
    "vllm", "continuous batching of vLLM's V1 engine");

}  // namespace
}  // namespace orrery
