// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "models/engines/rank_memory.h"
#include "models/engines/receiver.h"
#include "sim/serving/scheduler.h"
#include "sim/serving/size_steps.h"

namespace orrery {

/// In which order requests of SGLang that wait come to their turn.
enum class SchedulePolicy : std::uint8_t {
  kFcfs,  ///< order of arrival
  kLpm,   ///< the longest kept prefix first
  kLof    ///< the request with the most output tokens first
};

namespace config {
template <>
struct EnumNames<SchedulePolicy> {
  using enum SchedulePolicy;
  static constexpr std::pair<SchedulePolicy, const char*> values[] = {
      {kFcfs, "fcfs"}, {kLpm, "lpm"}, {kLof, "lof"}};
};
}  // namespace config

namespace {

/// How SGLang reserves the cache for output tokens, and when it looks for shared prefixes. Values
/// of versions are in configs/software/sglang_*.yaml.
struct SglangAdmission {
  double init_new_token_ratio = 0, min_new_token_ratio_factor = 1;
  std::int64_t new_token_ratio_decay_steps = 1, retract_decode_steps = 0;
  std::int64_t clip_max_new_tokens_estimation = 0;
  std::int64_t lpm_queue_limit = 0, in_batch_prefix_caching_threshold = 1;

  static const config::Schema<SglangAdmission>& schema() {
    using C = SglangAdmission;
    using config::between;
    static const auto schema =
        config::Schema<C>("admission", "room that requests leave to those that run")
            .optional("init_new_token_ratio", &C::init_new_token_ratio,
                      "share of the output tokens that is reserved at first, at "
                      "schedule_conservativeness 1",
                      between(0, 1))
            .optional("min_new_token_ratio_factor", &C::min_new_token_ratio_factor,
                      "part of that share that stays after new_token_ratio_decay_steps",
                      between(0, 1))
            .optional("new_token_ratio_decay_steps", &C::new_token_ratio_decay_steps,
                      "iterations of decodes until the share is at its least", between(1, 1e6))
            .optional("retract_decode_steps", &C::retract_decode_steps,
                      "output tokens of each request that are reserved after a retraction",
                      between(0, 1e6))
            .optional("clip_max_new_tokens_estimation", &C::clip_max_new_tokens_estimation,
                      "most output tokens of a request that count", between(1, 1e7))
            .optional("lpm_queue_limit", &C::lpm_queue_limit,
                      "schedule_policy lpm: with more requests that wait, they keep their order",
                      between(0, 1e6))
            .optional("in_batch_prefix_caching_threshold", &C::in_batch_prefix_caching_threshold,
                      "schedule_policy lpm: tokens of a common prefix for which a request waits "
                      "until another one has computed it",
                      between(1, 1e6));
    return schema;
  }
};

/// Keys of SGLang. Its defaults are in configs/software/sglang_*.yaml; 0 and 1 stand for them here.
struct Sglang final : SchedulerConfig {
  Sglang() {
    kind = "sglang";
    version = "0.5.5";
  }

  std::unique_ptr<Scheduler> make() const override;
  EngineOverheads overheads() const override { return rank_memory; }
  EngineMemory memory() const override {
    const std::int64_t chunk = chunked_prefill_size > 0 ? chunked_prefill_size : max_prefill_tokens;
    return {EngineMemory::Of::kStatic, mem_fraction_static,          chunk,
            max_running_requests,      max_total_tokens / page_size, page_size,
            !disable_radix_cache,      mamba_track_interval,         false};
  }

  std::int64_t padded(std::int64_t tokens, bool decodes) const override {
    if (!runs_graph(tokens, decodes)) return tokens;
    return next_size(decodes ? cuda_graph_sizes : prefill_graph_sizes, tokens);
  }
  bool runs_graph(std::int64_t tokens, bool decodes) const override {
    return decodes ? tokens <= cuda_graph_max_bs
                   : !prefill_graph_sizes.empty() && tokens <= memory().most_tokens;
  }

  SglangMemory rank_memory;
  std::int64_t cuda_graph_max_bs = 0, page_size = 1;
  std::vector<SizeStep> cuda_graph_sizes, prefill_graph_sizes;
  SglangAdmission admission;
  std::int64_t max_running_requests = 0, chunked_prefill_size = 1, max_prefill_tokens = 0;
  std::int64_t max_total_tokens = 0, mamba_track_interval = 0;
  std::int64_t scheduler_recv_interval = 1;
  SchedulePolicy schedule_policy = SchedulePolicy::kFcfs;
  double mem_fraction_static = 0, schedule_conservativeness = 0;
  bool enable_mixed_chunk = false, disable_radix_cache = false, disable_overlap_schedule = false;

  /// Keys of batches and of their kernels.
  static config::Schema<Sglang> batch_keys() {
    using config::between;
    return engine_schema<Sglang>("sglang", "batches of prompts or of decodes, as SGLang makes them")
        .optional("memory", &Sglang::rank_memory, kRankMemoryHelp)
        .optional("max_running_requests", &Sglang::max_running_requests,
                  "requests that run at a time at most", between(1, 1e6))
        .alias("moe_runner_backend", "kernels.experts")
        .optional("cuda_graph_max_bs", &Sglang::cuda_graph_max_bs,
                  "most sequences of a captured graph of decodes; smaller batches run the next "
                  "of cuda_graph_sizes; 0 captures no graphs",
                  between(0, 1e6))
        .optional("cuda_graph_sizes", &Sglang::cuda_graph_sizes,
                  "sequences of the captured graphs of decodes")
        .optional("prefill_graph_sizes", &Sglang::prefill_graph_sizes,
                  "tokens of graphs of all but attention that prompts run as, up to "
                  "chunked_prefill_size. Without sizes, prompts run without graphs")
        .optional("chunked_prefill_size", &Sglang::chunked_prefill_size,
                  "new tokens of an iteration of prompts at most; -1: prompts stay whole",
                  between(-1, 1e7))
        .optional("max_prefill_tokens", &Sglang::max_prefill_tokens,
                  "tokens of the prompts that begin in an iteration at most", between(1, 1e7))
        .optional("scheduler_recv_interval", &Sglang::scheduler_recv_interval,
                  "iterations of decodes after which the scheduler looks for new requests; it "
                  "also looks after each iteration of prompts, and while nothing runs",
                  between(1, 1e6))
        .optional("schedule_policy", &Sglang::schedule_policy,
                  "order of requests that wait: as they come, the longest kept prefix first "
                  "(those whose prefix another one computes first wait for it), or the request "
                  "with the most output tokens first");
  }

  static const config::Schema<Sglang>& schema() {
    using config::between;
    static const config::Schema<Sglang> schema =
        batch_keys()
            .optional("page_size", &Sglang::page_size, "tokens of a page of the cache",
                      between(1, 4096))
            .optional("max_total_tokens", &Sglang::max_total_tokens,
                      "tokens of the cache; 0: what memory is left for", between(0, 1e12))
            .optional("mem_fraction_static", &Sglang::mem_fraction_static,
                      "share of the device memory for weights and cache", between(0.01, 1))
            .optional("schedule_conservativeness", &Sglang::schedule_conservativeness,
                      "how much of the output is reserved before requests join, over the usual",
                      between(0.01, 10))
            .optional("enable_mixed_chunk", &Sglang::enable_mixed_chunk,
                      "whether decodes run beside prompts in one iteration")
            .optional("mamba_track_interval", &Sglang::mamba_track_interval,
                      "tokens from one kept state of recurrent layers to the next, with the radix "
                      "cache (server_args.py has 256); they lie in the common pool here, states of "
                      "requests that run are set aside",
                      between(1, 1e6))
            .optional("disable_radix_cache", &Sglang::disable_radix_cache,
                      "whether equal prefixes are not kept")
            .optional("disable_overlap_schedule", &Sglang::disable_overlap_schedule,
                      "whether the host prepares no iteration while devices run the one before")
            .derive([](Sglang& s) { s.host.overlapped = !s.disable_overlap_schedule; })
            .optional("admission", &Sglang::admission, "room that requests leave to those that run")
            .check(
                kSizeStepsMustAscend, [](const Sglang& s) { return ascends(s.cuda_graph_sizes); },
                "cuda_graph_sizes")
            .check(
                kSizeStepsMustAscend,
                [](const Sglang& s) { return ascends(s.prefill_graph_sizes); },
                "prefill_graph_sizes")
            .check(
                "must be -1 or positive",
                [](const Sglang& s) { return s.chunked_prefill_size != 0; },
                "chunked_prefill_size");
    return schema;
  }
};

/// Whether two prompts begin with so many tokens in common.
bool begin_alike(const Request& a, const Request& b, std::int64_t tokens) {
  if (a.prefix == nullptr || b.prefix == nullptr) return false;
  const auto [end, other] = std::mismatch(a.prefix->pieces.begin(), a.prefix->pieces.end(),
                                          b.prefix->pieces.begin(), b.prefix->pieces.end());
  return (end - a.prefix->pieces.begin()) * a.prefix->tokens >= tokens;
}

/// Tokens of the prompt of each request that are kept; -1 where one before it in the queue will
/// have computed what both begin with, so that it is better off waiting.
std::vector<std::int64_t> kept_of(const std::deque<RequestState>& waiting, const KvPool& pool,
                                  std::int64_t threshold) {
  std::vector<std::int64_t> kept;
  std::vector<const Request*> first;  // of those that nothing is kept of
  for (const RequestState& state : waiting) {
    kept.push_back(pool.kept(state.request));
    if (kept.back() > threshold) continue;
    const bool follows = std::any_of(first.begin(), first.end(), [&](const Request* other) {
      return begin_alike(*other, state.request, threshold);
    });
    if (follows) {
      kept.back() = -1;
    } else {
      first.push_back(&state.request);
    }
  }
  return kept;
}

/// Whether a failed admission counts in later iterations, too: the flag is that of the decodes, and
/// taken back where a prompt of the iteration leaves it half done (get_next_batch_to_run).
bool stays_full(const Queue& queue, const Batch& batch) {
  const bool halves = std::any_of(batch.shares.begin(), batch.shares.end(), [&](const auto& share) {
    return queue.running[share.running].missing() > share.tokens;
  });
  return !halves && std::any_of(queue.running.begin(), queue.running.end(),
                                [](const RequestState& p) { return p.decodes(); });
}

/// The scheduler of SGLang (srt/managers/scheduler.py, schedule_policy.py): an iteration is either
/// of prompts or of decodes, prompts first; with `enable_mixed_chunk` decodes ride along. A request
/// joins where the cache has room for it and for what those that run are likely to produce yet: a
/// share of their answers, `new_token_ratio`, that falls while nothing goes wrong. Where decodes
/// find no room, requests with the shortest answers are retracted, and the ratio rises. Those that
/// wait are ordered by `schedule_policy` before each iteration.
class SglangScheduler final : public Scheduler {
 public:
  explicit SglangScheduler(const Sglang& rules)
      : rules_(rules),
        receiver_(rules.scheduler_recv_interval),
        first_ratio_(
            std::min(rules.admission.init_new_token_ratio * rules.schedule_conservativeness, 1.0)),
        ratio_(first_ratio_) {}

  void admit(Queue& queue, KvPool& pool, Batch& out) override {
    std::deque<RequestState> hidden = receiver_.hide(queue, queue.running.empty());
    put_together(queue, pool, out);
    receiver_.show(queue, std::move(hidden), out);
  }

 private:
  void put_together(Queue& queue, KvPool& pool, Batch& out) {
    out.shares.clear();
    const bool chunks = rules_.chunked_prefill_size > 0;
    prefill_left_ = rules_.max_prefill_tokens;
    chunk_left_ = chunks ? rules_.chunked_prefill_size : INT64_MAX;
    // Prompts are in the tree once they are computed, before any decode (cache_unfinished_req).
    for (RequestState& p : queue.running) pool.publish(p);
    if (queue.running.size() < full_at_) full_at_ = 0;
    go_on_with_chunk(queue, pool, out);
    sort(queue, pool);
    if (full_at_ == 0) join(queue, pool, out);
    if (!out.shares.empty() && !rules_.enable_mixed_chunk) return;
    if (out.shares.empty()) retract(queue, pool);
    decode(queue, pool, out);
  }

  /// Tokens that those that run are reckoned to need yet.
  double reserved(const Queue& queue) const {
    std::int64_t left = 0;
    for (const RequestState& p : queue.running)
      left +=
          std::min(p.request.output - p.produced, rules_.admission.clip_max_new_tokens_estimation);
    return ratio_ * static_cast<double>(left);
  }

  /// Puts those that wait in the order of the policy; equals stay as they were.
  void sort(Queue& queue, const KvPool& pool) const {
    std::deque<RequestState>& waiting = queue.waiting;
    if (waiting.size() < 2) return;
    if (rules_.schedule_policy == SchedulePolicy::kLof) {
      std::stable_sort(waiting.begin(), waiting.end(),
                       [](const RequestState& a, const RequestState& b) {
                         return a.request.output > b.request.output;
                       });
    }
    if (rules_.schedule_policy != SchedulePolicy::kLpm ||
        waiting.size() > static_cast<std::size_t>(rules_.admission.lpm_queue_limit))
      return;
    const std::vector<std::int64_t> kept =
        kept_of(waiting, pool, rules_.admission.in_batch_prefix_caching_threshold);
    std::vector<std::size_t> order(waiting.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return kept[a] > kept[b]; });
    std::deque<RequestState> sorted;
    for (const std::size_t i : order) sorted.push_back(std::move(waiting[i]));
    waiting = std::move(sorted);
  }

  /// A prompt that has begun to enter goes on first.
  void go_on_with_chunk(Queue& queue, KvPool& pool, Batch& out) {
    for (std::size_t i = 0; i < queue.running.size(); ++i) {
      RequestState& p = queue.running[i];
      if (p.decodes()) continue;
      const std::int64_t tokens = std::min(p.missing(), chunk_left_);
      if (tokens == 0 || !pool.grow(p, tokens)) continue;
      out.shares.push_back({i, tokens});
      chunk_left_ -= tokens;
      prefill_left_ -= tokens;
    }
  }

  void join(Queue& queue, KvPool& pool, Batch& out) {
    const auto most = static_cast<std::size_t>(rules_.max_running_requests);
    const auto room = [&] { return static_cast<double>(pool.available() * pool.block_tokens()); };
    double reckoned = reserved(queue);
    while (!queue.waiting.empty() && chunk_left_ > 0 && prefill_left_ > 0 &&
           queue.running.size() < most) {
      RequestState& first = queue.waiting.front();
      pool.find_prefix(first);
      const std::int64_t output = std::min(first.request.output - first.produced,
                                           rules_.admission.clip_max_new_tokens_estimation);
      const auto needed = static_cast<double>(first.missing() + output);
      const std::int64_t tokens = std::min(first.missing(), chunk_left_);
      const bool whole =
          rules_.chunked_prefill_size > 0 || out.shares.empty() || first.missing() <= prefill_left_;
      // Alone it may have all that there is, which SGLang would let wait for ever.
      const bool room_for = needed + reckoned < room() || queue.running.empty();
      if (!whole || !room_for || !pool.grow(first, tokens)) {
        pool.put_back(first);
        if (whole && stays_full(queue, out)) full_at_ = queue.running.size();
        return;
      }
      reckoned += static_cast<double>(first.missing() - tokens) + static_cast<double>(output);
      out.shares.push_back({queue.running.size(), tokens});
      chunk_left_ -= tokens;
      prefill_left_ -= tokens;
      queue.running.push_back(std::move(first));
      queue.waiting.pop_front();
    }
  }

  /// Sends those with the shortest answers, and of them those with the longest prompts, to the end
  /// of the queue until all others have room for a token more (scheduler.py,
  /// _add_request_to_queue).
  void retract(Queue& queue, KvPool& pool) {
    const auto needed = [&] {
      std::int64_t blocks = 0;
      for (const RequestState& p : queue.running)
        if (p.decodes()) blocks += std::max<std::int64_t>(0, pool.lacking(p, 1));
      return blocks;
    };
    bool retracted = false;
    while (queue.running.size() > 1 && needed() > pool.available()) {
      const auto least = std::min_element(queue.running.begin(), queue.running.end(),
                                          [](const RequestState& a, const RequestState& b) {
                                            return std::pair(a.produced, -a.request.prompt) <
                                                   std::pair(b.produced, -b.request.prompt);
                                          });
      std::rotate(least, least + 1, queue.running.end());
      preempt_last(queue, pool);
      queue.waiting.push_back(std::move(queue.waiting.front()));
      queue.waiting.pop_front();
      retracted = true;
    }
    const SglangAdmission& admission = rules_.admission;
    if (!retracted) {
      const double least = admission.min_new_token_ratio_factor;
      const auto steps = static_cast<double>(admission.new_token_ratio_decay_steps);
      ratio_ = std::max(ratio_ - first_ratio_ * (1 - least) / steps, first_ratio_ * least);
      return;
    }
    double produced = 0, all = 0;
    for (const RequestState& p : queue.running) {
      produced += static_cast<double>(p.produced);
      all += static_cast<double>(p.request.output);
    }
    const auto count = static_cast<double>(queue.running.size());
    ratio_ = std::min(
        1.0, (produced + static_cast<double>(admission.retract_decode_steps) * count) / (all + 1));
  }

  void decode(Queue& queue, KvPool& pool, Batch& out) {
    for (std::size_t i = 0; i < queue.running.size(); ++i) {
      RequestState& p = queue.running[i];
      if (p.decodes() && pool.grow(p, 1)) out.shares.push_back({i, 1});
    }
  }

  const Sglang& rules_;
  Receiver receiver_;
  double first_ratio_, ratio_;
  /// Requests that ran when one found no room: nobody joins until one of them leaves
  /// (batch_is_full). 0: all that asked found room.
  std::size_t full_at_ = 0;
  std::int64_t chunk_left_ = 0, prefill_left_ = 0;
};

std::unique_ptr<Scheduler> Sglang::make() const { return std::make_unique<SglangScheduler>(*this); }

const config::Registered<SchedulerConfig>::Add<Sglang> added_sglang(
    "sglang", "batches of prompts or of decodes, as SGLang makes them");

}  // namespace
}  // namespace orrery
