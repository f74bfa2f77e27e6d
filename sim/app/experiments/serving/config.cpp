// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/config.h"

#include <fmt/core.h>
#include <algorithm>

#include "sim/app/experiments/core/carbon.h"
#include "sim/app/experiments/keys/algorithm_names.h"
#include "sim/app/experiments/keys/enum_names.h"

namespace orrery {

using config::between;

const config::Schema<ServingGroup>& ServingGroup::schema() {
  using G = ServingGroup;
  static const auto schema =
      config::Schema<G>("group", "replicas of one kind")
          .optional("name", &G::name, "what you call them")
          .reference("system", &G::system, "systems", "the machine of a replica")
          .optional("nodes", &G::nodes, "copies of the system for a replica", between(1, 100000))
          .optional("replicas", &G::replicas, "instances that requests are spread over",
                    between(1, 100000))
          .optional("role", &G::role,
                    "work of its replicas: prompts (prefill), output tokens after the first "
                    "(decode), or both")
          .optional("parallel", &G::parallel,
                    "how the model is spread over the ranks of a replica; dp ranks run iterations "
                    "together, each with requests of its own")
          .optional("precision", &G::precision,
                    "number format of weights and matrix operands; where none is given, that of "
                    "the checkpoint")
          .optional("kv_precision", &G::kv_precision, kKvPrecisionHelp)
          .required("engine", &G::engine, "the scheduler: {kind: vllm}")
          .optional("expert_routing", &G::expert_routing, kExpertRoutingHelp)
          .optional("algorithms", &G::algorithms, kAlgorithmsHelp)
          .optional("two_batch_overlap", &G::two_batch_overlap, kTwoBatchHelp)
          .optional("speculative", &G::speculative, "draft tokens, which the step verifies")
          .optional("lora", &G::lora,
                    "adapters that devices hold beside the model, for requests that ask for one "
                    "(serving.workload.adapters)")
          .optional("autoscale", &G::autoscale,
                    "replicas that start and end with the requests that there are")
          .optional(
              "unused", &G::unused,
              "accelerators of servers (`nodes` systems) that no replica uses. Replicas of a group "
              "share servers, as many as fit; other groups have servers of their own. A server is "
              "held while any of its replicas is. idle: a held server draws idle power of unused "
              "accelerators and all of its host power, and all accelerators are paid for. absent: "
              "replicas are charged their share of host power and price alone, while they are held")
          .optional(
              "kv_tiers", &G::kv_tiers,
              "where pieces of prompts go that the cache has no room for, from the nearest on")
          .optional("usd_per_hour", &G::usd_per_hour,
                    "USD an hour of an accelerator, in place of what serving.prices says; `unused` "
                    "says which accelerators are paid for",
                    config::at_least(0))
          .check("there are fewer replicas than autoscale.min",
                 [](const G& g) { return !g.autoscale || g.autoscale->min <= g.replicas; },
                 {"autoscale.min", "replicas"})
          .check("only groups of role both start and end with their requests",
                 [](const G& g) { return !g.autoscale || g.role == InstanceRole::kBoth; },
                 {"autoscale", "role"});
  return schema;
}

std::string group_path(std::size_t group, const std::string& key) {
  return fmt::format("serving.fleet.{}{}{}", group, key.empty() ? "" : ".", key);
}

const config::Schema<ServingSlo>& ServingSlo::schema() {
  using S = ServingSlo;
  static const auto schema =
      config::Schema<S>("slo", "what users were promised")
          .optional("ttft", &S::ttft, "time to the first token of a request that counts as good",
                    config::positive())
          .optional("tpot", &S::tpot, "time per further token of a request that counts as good",
                    config::positive())
          .optional("e2el", &S::e2el, "time of a whole request that counts as good",
                    config::positive())
          .optional("ttft_p99", &S::ttft_p99, "time to the first token that 99 of 100 keep",
                    config::positive())
          .optional("tpot_p99", &S::tpot_p99, "time per further token that 99 of 100 keep",
                    config::positive())
          .optional("e2el_p99", &S::e2el_p99, "time of whole requests that 99 of 100 keep",
                    config::positive());
  return schema;
}

const config::Schema<AutoscaleConfig>& AutoscaleConfig::schema() {
  using A = AutoscaleConfig;
  static const auto schema =
      config::Schema<A>("autoscale", "replicas that start and end with the requests that there are")
          .optional("min", &A::min, "replicas that always run", between(1, 100000))
          .required("requests", &A::requests,
                    "requests, waiting and running, that a replica is to have: as many replicas "
                    "run as that takes, up to `replicas`",
                    config::positive())
          .optional("interval", &A::interval,
                    "time between two looks; 15 s is that of Kubernetes' autoscaler",
                    config::positive())
          .optional("start", &A::start,
                    "time until a new replica takes requests: a machine, weights, graphs "
                    "(estimate: two minutes)",
                    config::at_least(0))
          .optional("cool_down", &A::cool_down,
                    "time for which fewer replicas must do before one ends; 300 s is the "
                    "stabilisation window of Kubernetes' autoscaler",
                    config::at_least(0))
          .optional("ramp", &A::ramp,
                    "time over which a new replica gets its full share of requests",
                    config::at_least(0));
  return schema;
}

const config::Schema<KvTierConfig>& KvTierConfig::schema() {
  using K = KvTierConfig;
  static const auto schema =
      config::Schema<K>("tier", "memory for pieces of prompts that devices have no room for")
          .optional("kind", &K::kind,
                    "memory of the hosts, memory of others over the NICs (pooled), or drives")
          .required("capacity", &K::capacity, "bytes that a replica has of it", config::positive())
          .optional("bandwidth", &K::bandwidth,
                    "bytes/s at which a replica reads it; by itself what the links of its ranks to "
                    "their hosts carry, of pooled memory their NICs and then those links",
                    config::positive())
          .optional("latency", &K::latency,
                    "time before what is read begins to come; by itself 10 us from hosts, that of "
                    "the network from others, 100 us from drives (estimates)",
                    config::at_least(0))
          .check("drives have no links to tell their bandwidth by",
                 [](const K& k) { return k.kind != KvTierKind::kSsd || k.bandwidth.has_value(); },
                 {"bandwidth", "kind"});
  return schema;
}

const config::Schema<KvTransferConfig>& KvTransferConfig::schema() {
  using K = KvTransferConfig;
  static const auto schema =
      config::Schema<K>("kv_transfer", "how caches go from instances of prompts to others")
          .optional("over", &K::over,
                    "links that they take: the NICs of the ranks that hold them, or the links "
                    "inside one system, whose parts all replicas then are")
          .optional(
              "start", &K::start,
              "time before a cache begins to move: connectors agree and read descriptors. 1 ms: "
              "Mooncake's connector took 0.5 ms in vLLM between H800 nodes and 1.6 ms in SGLang "
              "between H20 nodes (its docs/source/performance, lines through all sizes)",
              config::at_least(0))
          .optional("router", &K::router,
                    "which decode replica gets a request; one of `orrery describe routers`");
  return schema;
}

bool ServingConfig::autoscaled() const {
  return std::ranges::any_of(fleet, [](const auto& group) { return group.autoscale.has_value(); });
}

double ServingConfig::accelerators() const {
  double all = 0;
  for (const ServingGroup& group : fleet) all += group.replicas * group.accelerators();
  return all;
}

bool ServingConfig::has_role(InstanceRole role) const {
  return std::ranges::count(fleet, role, &ServingGroup::role) > 0;
}

const config::Schema<ServingConfig>& ServingConfig::schema() {
  using S = ServingConfig;
  static const auto schema =
      config::Schema<S>("serving", "requests and the fleet that serves them")
          .required("workload", &S::workload, "requests: an arrival process, a trace or clients")
          .optional("images", &S::images,
                    "images in front of each prompt, for models with a vision tower: the tower "
                    "works on them with the first piece of the prompt, and the tokens that stand "
                    "for them are added to those of the workload, which are text",
                    between(0, 1e5))
          .optional("image", &S::image, kImageHelp)
          .required("fleet", &S::fleet, "groups of replicas")
          .optional(
              "router", &S::router,
              "which replica takes a request; one of `orrery describe routers`. A router counts a "
              "request from the moment it sends it, and sees at once which prefixes replicas keep")
          .optional("report_interval", &S::report_interval,
                    "time between two load reports of replicas to the router; 0 s: at once. vLLM's "
                    "data parallel coordinator reports every 0.1 s",
                    config::at_least(0))
          .optional("kv_transfer", &S::kv_transfer,
                    "how KV caches go from prefill to decode replicas")
          .optional("slo", &S::slo, "what users were promised")
          .optional("record", &S::record,
                    "what a stored result has: metrics, or requests, which adds a row for each "
                    "request and what queues and caches held over time")
          .optional("prices", &S::prices,
                    "price list of accelerators: a name in configs/prices, a path, or none")
          .optional("carbon_intensity", &S::carbon_intensity, kCarbonIntensityHelp,
                    config::at_least(0))
          .check(
              "needs at least one group", [](const S& s) { return !s.fleet.empty(); }, "fleet");
  return schema;
}

}  // namespace orrery
