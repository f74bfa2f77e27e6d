// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/config/registered.h"
#include "sim/serving/adapter_slots.h"
#include "sim/serving/engine_costs.h"
#include "sim/serving/engine_version.h"
#include "sim/serving/iteration.h"
#include "sim/serving/kernel_rules.h"
#include "sim/serving/kv_pool.h"
#include "sim/serving/request.h"
#include "sim/units/units.h"

namespace orrery {

/// Requests of one instance: those that wait, as they came, and those that it works on.
struct Queue {
  std::deque<RequestState> waiting;
  std::vector<RequestState> running;
  std::int64_t max_loras = 0;  ///< different LoRA adapters in an iteration at most
};

/// What an instance does in its next iteration: new tokens of each running request.
struct Batch {
  struct Share {
    std::size_t running = 0;  ///< place in Queue::running
    std::int64_t tokens = 1;
    bool samples = true;   ///< a token of the answer comes out of it; known once it has run
    bool decodes = false;  ///< whether it was a decode; known once it has run
  };
  std::vector<Share> shares;
  std::vector<Chunk> chunks;  ///< chunks of shape(), kept for the next one
  AdapterSet adapters;        ///< those of shape(), kept likewise

  /// As a pricer sees it. Valid until the next call.
  /// @param draft_tokens that each decode verifies with its next token
  BatchShape shape(const Queue& queue, std::int64_t draft_tokens = 0);
  /// Prompts leave it; they keep their room in the cache.
  void put_off_prompts(const Queue& queue);
  /// The iteration has run: caches grow, and who has computed all that it had gets a token.
  void ran(Queue& queue);
};

/// The policy of an engine: which requests share the next iteration. State is that of the instance.
class Scheduler {
 public:
  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Takes requests from `queue.waiting` into `queue.running`, makes room in the pool for what runs
  /// next, and fills `out` with it; empty where nothing can. May send requests back to wait.
  virtual void admit(Queue& queue, KvPool& pool, Batch& out) = 0;
};

/// What an engine decides for all data parallel ranks of a batch together, once each has put its
/// own together.
class RanksPolicy {
 public:
  RanksPolicy() = default;
  RanksPolicy(const RanksPolicy&) = delete;
  RanksPolicy& operator=(const RanksPolicy&) = delete;
  virtual ~RanksPolicy() = default;

  /// Whether the prompts of this iteration wait for a later one. Called in every iteration.
  virtual bool puts_off_prompts(std::span<const BatchShape> ranks) = 0;
};

/// Drops the cache of the running request that came last and lets it wait before all others.
void preempt_last(Queue& queue, KvPool& pool);

/// Whether a request goes before another by priority, then by arrival, then by number.
bool goes_before(const Request& a, const Request& b);

/// Work of the host that devices wait for.
struct HostCosts {
  Seconds iteration{};  ///< time of each iteration: scheduling, inputs, sampling, output
  Seconds sequence{};   ///< time for each sequence of the batch
  Seconds
      request{};  ///< time of a request before it waits: parsing, tokens, queues between processes
  Seconds launch{};  ///< time to launch a kernel of an iteration that does not run as a graph
  Seconds gap{};     ///< time between iterations that hides behind nothing
  /// The host prepares an iteration while devices run the one before: engines say so by keys of
  /// their own.
  bool overlapped = false;

  /// How long an iteration takes whose devices take `device`. Kernels run while later ones are
  /// launched.
  /// @param kernels those that are launched one by one
  /// @param follows an iteration comes right before it, beside which the host may prepare it
  Picoseconds iteration_time(Picoseconds device, std::size_t sequences, double kernels,
                             bool follows) const;
  static const config::Schema<HostCosts>& schema();
};

/// How an engine divides the memory of its devices.
struct EngineMemory {
  /// What `share` is of, and what of it is the cache's.
  enum class Of {
    kDevice,   ///< device memory, for weights, activations and cache (vLLM)
    kStatic,   ///< device memory, for weights and cache (SGLang)
    kLeftOver  ///< memory that weights and activations leave, for the cache (TensorRT-LLM)
  };
  Of of = Of::kDevice;
  double share = 0.9;
  std::int64_t most_tokens = 1;   ///< new tokens of an iteration, which activations are kept for
  std::int64_t most_sampled = 1;  ///< sequences whose next token is chosen in an iteration
  std::int64_t blocks = 0;        ///< blocks as given; 0: what is left
  std::int64_t block_tokens = 16;
  bool prefix_caching = false;
  /// Tokens from one state of recurrent layers that is kept with a prefix to the next; 0: a block,
  /// which has as many tokens as make its keys and values of a layer as large as a layer's states.
  std::int64_t state_tokens = 0;
  /// Where states of requests that run are: in blocks of the cache, or set aside for as many as may
  /// run.
  bool states_in_blocks = true;
  /// Layers with a window keep all tokens, as other layers do.
  bool whole_windows = false;
};

/// Keys of an engine, chosen by `kind`. A file adds one with an object
/// `const config::Registered<SchedulerConfig>::Add<StaticBatch>`.
struct SchedulerConfig {
  virtual ~SchedulerConfig() = default;
  virtual std::unique_ptr<Scheduler> make() const = 0;
  virtual EngineMemory memory() const = 0;
  virtual EngineOverheads overheads() const { return {}; }
  /// @return null: ranks do not look at each other
  virtual std::unique_ptr<RanksPolicy> ranks_policy() const { return nullptr; }
  /// Tokens that layers compute for so many: graphs that were captured for some sizes run the next
  /// larger one.
  /// @param decodes the batch has no prompts
  virtual std::int64_t padded(std::int64_t tokens, bool /*decodes*/) const { return tokens; }
  /// Whether so many tokens run as a captured graph, without launches of their kernels.
  virtual bool runs_graph(std::int64_t /*tokens*/, bool decodes) const { return decodes; }
  /// How many sizes of iterations that only decode have a graph.
  std::int64_t captured_graphs() const;

  /// Whether its scheduler counts the adapters of an iteration.
  virtual bool serves_adapters() const { return false; }

  std::string kind;     ///< "vllm": the name that it is registered by
  std::string version;  ///< "0.19", or a file; empty: engines without versions
  HostCosts host;
  KernelRules kernels;
  /// Sets of calibrations of its own kernels, best first: "vllm_0_24".
  std::vector<std::string> kernel_calibrations;
  /// Tokens of the longest request that the engine takes; 0: not said.
  std::int64_t max_model_len = 0;
  EngineAllReduce all_reduce;

  static const config::Choices& choices() {
    return config::Registered<SchedulerConfig>::choices("kind", "");
  }
  static const SchedulerConfig* view(const std::string& name, void* object) {
    return config::Registered<SchedulerConfig>::view(name, object);
  }
};

/// A schema with the keys that all engines have.
template <class T>
config::Schema<T> engine_schema(const std::string& kind, const std::string& help) {
  config::Schema<T> schema(kind, help);
  schema.optional("kind", static_cast<std::string T::*>(&SchedulerConfig::kind), "which engine")
      .optional("version", static_cast<std::string T::*>(&SchedulerConfig::version),
                "version of the engine, or a file of your own (`extends: vllm_0_19`): keys that "
                "are left out have its defaults (`orrery describe software`)")
      .check(
          "expected a version such as 0.11, or the path of a file",
          [](const T& e) { return e.version.empty() || is_engine_version(e.version); }, "version")
      .optional(
          "host", static_cast<HostCosts T::*>(&SchedulerConfig::host),
          "work of the host that devices wait for; keys that are left out of it take no time. "
          "Without it, of engines with versions what `orrery describe software` shows")
      .optional("all_reduce", static_cast<EngineAllReduce T::*>(&SchedulerConfig::all_reduce),
                "kernels that add up buffers of tensor parallel ranks inside a system. By itself "
                "what this version takes on this device (`orrery describe software`)")
      .alias("custom_all_reduce", "all_reduce.own")
      .optional("kernels", static_cast<KernelRules T::*>(&SchedulerConfig::kernels),
                "kernels of the engine. Keys that are left out, and auto, follow this version "
                "(`orrery describe software`)")
      .optional("kernel_calibrations",
                static_cast<std::vector<std::string> T::*>(&SchedulerConfig::kernel_calibrations),
                "calibrations of the engine's own kernels, best first: vllm_0_24 is "
                "h200_sxm_vllm_0_24 (`orrery describe calibrations`) where the device has the "
                "calibration h200_sxm. The first that has a kernel prices it; the device's "
                "calibration prices all others. [] uses the device's calibration alone. By itself "
                "those of this version (`orrery describe software`)")
      .alias("fusions", "kernels")
      .alias("quant_fusion", "kernels.quant_fusion")
      .optional(
          "max_model_len", static_cast<std::int64_t T::*>(&SchedulerConfig::max_model_len),
          "tokens of the longest request (SGLang: context_length, TensorRT-LLM: max_seq_len), "
          "for which the cache needs room; 0: any that the cache holds",
          config::between(0, 1e9))
      .elsewhere(config::Registered<SchedulerConfig>::with_key);
  return schema;
}

}  // namespace orrery
