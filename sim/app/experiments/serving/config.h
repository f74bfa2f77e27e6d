// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/experiments/keys/inference_keys.h"
#include "sim/app/pricing/machine.h"
#include "sim/machine/system_config.h"
#include "sim/serving/instance.h"
#include "sim/serving/request_source.h"
#include "sim/serving/scheduler.h"
#include "workloads/layers/experts/expert_routing_config.h"
#include "workloads/layers/parts/lora.h"
#include "workloads/layers/work/enum_names.h"
#include "workloads/models/llm_config.h"
#include "workloads/operators/cache_format.h"
#include "workloads/plan/parallel_config.h"

namespace orrery {

/// The links that keys and values take from one instance to another.
enum class KvLinks : std::uint8_t {
  kScaleOut,  ///< the NICs of the ranks
  kScaleUp    ///< those inside a system that all instances are parts of
};

/// How keys and values go from instances of prompts to those of answers.
struct KvTransferConfig {
  KvLinks over = KvLinks::kScaleOut;
  Seconds start{1e-3};  ///< before a cache begins to move
  std::string router = "least_loaded";
  static const config::Schema<KvTransferConfig>& schema();
};

/// Where pieces of prompts go that device memory has no room for.
enum class KvTierKind : std::uint8_t {
  kHost,    ///< memory of the hosts, over the links of the accelerators to them
  kPooled,  ///< memory of others, over the NICs
  kSsd      ///< drives of the hosts
};

struct KvTierConfig {
  KvTierKind kind = KvTierKind::kHost;
  Bytes capacity{};                         ///< bytes that a replica has
  std::optional<BytesPerSecond> bandwidth;  ///< rate of a replica; none: that of its links
  std::optional<Seconds> latency;
  static const config::Schema<KvTierConfig>& schema();
};

/// Replicas that start and end with the requests that there are.
struct AutoscaleConfig {
  int min = 1;
  double requests = 1;
  Seconds interval{15}, start{120}, cool_down{300}, ramp{0};
  static const config::Schema<AutoscaleConfig>& schema();
};

/// Replicas of one kind in a fleet: each is a model on ranks of a system of its own.
struct ServingGroup {
  std::string name = "group";
  SystemConfig system;
  int nodes = 1;     ///< copies of the system for each replica
  int replicas = 1;  ///< number of instances
  InstanceRole role = InstanceRole::kBoth;
  ParallelConfig parallel;
  Precision precision = Precision::kBf16;
  CacheFormat kv_precision = CacheFormat::kBf16;
  std::int64_t widened_bits =
      0;  ///< see RankWork::widened_bits; follows from model and accelerator
  config::OneOf<SchedulerConfig> engine;
  std::string engine_defaults;                        ///< see follow_release()
  std::optional<ExpertRoutingConfig> expert_routing;  ///< none: ranks get the mean of the tokens
  bool two_batch_overlap = false;
  std::optional<SpeculativeConfig> speculative;
  std::optional<LoraConfig> lora;            ///< slots for adapters; none: there are none
  std::optional<AutoscaleConfig> autoscale;  ///< none: all replicas run always
  Unused unused = Unused::kIdle;             ///< accelerators of held servers that no replica uses
  std::vector<KvTierConfig> kv_tiers;        ///< tiers from the nearest on
  std::vector<std::string> algorithms;       ///< collective algorithms: see algorithm_names.h
  std::optional<double> usd_per_hour;  ///< USD an hour of an accelerator; none: that of the list
  std::int64_t images = 0;             ///< those of ServingConfig
  ImageSize image;

  /// Accelerators of a replica that are used (a rank is a die).
  double accelerators() const {
    return static_cast<double>(parallel.ranks()) / system.accelerator.dies;
  }
  static const config::Schema<ServingGroup>& schema();
};

/// The path of a group, or of a key of it: "serving.fleet.0", "serving.fleet.0.lora".
std::string group_path(std::size_t group, const std::string& key = {});

/// What users were promised: times that a share of all requests must keep.
struct ServingSlo {
  std::optional<Seconds> ttft, tpot, e2el;  ///< bounds of each request, for goodput
  std::optional<Seconds> ttft_p99, tpot_p99, e2el_p99;

  bool empty() const { return !(ttft || tpot || e2el || ttft_p99 || tpot_p99 || e2el_p99); }
  /// The bound of a request: its own, or that of the 99th percentile.
  static std::optional<Seconds> bound(const std::optional<Seconds>& each,
                                      const std::optional<Seconds>& p99) {
    return each ? each : p99;
  }
  static const config::Schema<ServingSlo>& schema();
};

/// What of a run a result has.
enum class ServingRecord : std::uint8_t {
  kMetrics,
  kRequests  ///< a row a request, and queues and caches over time, as well
};

struct ServingConfig {
  config::OneOf<RequestSourceConfig> workload;
  std::int64_t images = 0;  ///< images in front of each prompt, besides its tokens of text
  std::optional<ImageConfig> image;
  std::vector<ServingGroup> fleet;
  std::string router = "least_loaded";
  Seconds report_interval{};  ///< time between two load reports; with 0 s every change is reported
                              ///< at once
  KvTransferConfig kv_transfer;
  ServingSlo slo;
  ServingRecord record = ServingRecord::kMetrics;
  std::string prices = "neocloud";                  ///< a name of the library, or a path; "none"
  std::optional<CarbonIntensity> carbon_intensity;  ///< none: no CO2 is reported

  bool has_role(InstanceRole role) const;
  /// Whether prompts and answers are the work of different instances.
  bool disaggregated() const { return has_role(InstanceRole::kPrefill); }
  bool autoscaled() const;
  double accelerators() const;
  static const config::Schema<ServingConfig>& schema();
};

namespace config {

template <>
struct EnumNames<InstanceRole> {
  static constexpr std::pair<InstanceRole, const char*> values[] = {
      {InstanceRole::kBoth, "both"},
      {InstanceRole::kPrefill, "prefill"},
      {InstanceRole::kDecode, "decode"}};
};
template <>
struct EnumNames<KvLinks> {
  static constexpr std::pair<KvLinks, const char*> values[] = {{KvLinks::kScaleOut, "scale_out"},
                                                               {KvLinks::kScaleUp, "scale_up"}};
};

template <>
struct EnumNames<KvTierKind> {
  static constexpr std::pair<KvTierKind, const char*> values[] = {
      {KvTierKind::kHost, "host"}, {KvTierKind::kPooled, "pooled"}, {KvTierKind::kSsd, "ssd"}};
};

template <>
struct EnumNames<ServingRecord> {
  static constexpr std::pair<ServingRecord, const char*> values[] = {
      {ServingRecord::kMetrics, "metrics"}, {ServingRecord::kRequests, "requests"}};
};

}  // namespace config

}  // namespace orrery
