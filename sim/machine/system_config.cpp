// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/system_config.h"

#include <algorithm>
#include <numeric>

namespace orrery {
namespace {

using config::between;
using config::Bounds;
using config::Schema;
using namespace literals;

const Bounds kCount = between(0, 1e6);
const Bounds kFraction = between(1e-3, 1);
const Bounds kLatency = between(Seconds(0), Seconds(1));

bool links_add_up(const SystemConfig& system) {
  const auto& links = system.scale_up.links_per_switch;
  if (system.scale_up.kind != "nvswitch" || !system.accelerator.scale_up.present()) return true;
  return std::all_of(links.begin(), links.end(), [](int n) { return n > 0; }) &&
         std::accumulate(links.begin(), links.end(), std::int64_t{0}) ==
             system.accelerator.scale_up.links.value;
}

bool planes_add_up(const SystemConfig& system) {
  if (system.scale_up.kind != "unified_bus" || !system.accelerator.scale_up.present()) return true;
  return system.scale_up.planes * system.accelerator.dies ==
         system.accelerator.scale_up.links.value;
}

std::string missing_ports(const SystemConfig& system) {
  const bool alone = system.scale_up.kind == "none" && system.accelerators.value == 1;
  if (alone || system.accelerator.scale_up.present()) return {};
  return system.accelerator.name +
         " has no scale_up ports: a system has one of it, with scale_up.kind none";
}

}  // namespace

const Schema<ScaleUpConfig>& ScaleUpConfig::schema() {
  using C = ScaleUpConfig;
  static const auto schema =
      Schema<C>("scale_up", "the fabric inside one system")
          .required("kind", &C::kind, "topology: nvswitch, unified_bus, none")
          .optional("links_per_switch", &C::links_per_switch,
                    "nvswitch: links of a package to each switch chip", kCount)
          .optional("planes", &C::planes, "unified_bus: independent sub-planes", kCount)
          .optional("l2_switches", &C::l2_switches, "unified_bus: second-level chips of a plane",
                    kCount)
          .optional("switch_reduction", &C::switch_reduction,
                    "nvswitch: the chips reduce and multicast, as from NVSwitch 3 on (NVLS)")
          .required("latency", &C::latency,
                    "of one step of a collective, or of a message, software included [us]",
                    kLatency)
          .required("efficiency", &C::efficiency,
                    "share of the link bandwidth that collectives reach", kFraction)
          .check(
              "nvswitch needs links_per_switch",
              [](const C& c) { return c.kind != "nvswitch" || !c.links_per_switch.empty(); },
              "kind")
          .check(
              "unified_bus needs planes and l2_switches",
              [](const C& c) {
                return c.kind != "unified_bus" || (c.planes > 0 && c.l2_switches > 0);
              },
              "kind");
  return schema;
}

const Schema<ScaleOutConfig>& ScaleOutConfig::schema() {
  using C = ScaleOutConfig;
  static const auto schema =
      Schema<C>("scale_out", "the network between systems")
          .optional("kind", &C::kind, "topology: rail_optimized")
          .optional("nodes_per_leaf_group", &C::nodes_per_leaf_group,
                    "nodes whose rails share leaf switches", between(1, 1e6))
          .required("latency", &C::latency,
                    "of one step of a collective, or of a message, software included [us]",
                    kLatency)
          .required("efficiency", &C::efficiency,
                    "share of the link bandwidth that collectives reach", kFraction);
  return schema;
}

const Schema<HostConfig>& HostConfig::schema() {
  using C = HostConfig;
  static const auto schema =
      Schema<C>("host", "the CPUs of the system")
          .required("processors", &C::processors, "CPUs of the system", between(1, 1e6))
          .optional("memory_kind", &C::memory_kind, "LPDDR5X, DDR5, ...")
          .required("memory", &C::memory, "of all CPUs together [TB]", between(1_MB, Bytes(1e17)));
  return schema;
}

const Schema<SystemConfig>& SystemConfig::schema() {
  using C = SystemConfig;
  static const auto schema =
      Schema<C>("system", "a system as sold: a server or a supernode")
          .named("system", &C::id)
          .required("name", &C::name, "what people call it")
          .reference("accelerator", &C::accelerator, "accelerators", "the accelerator package")
          .required("accelerators", &C::accelerators, "packages of the system", between(1, 1e6))
          .optional("accelerators_per_node", &C::accelerators_per_node,
                    "packages behind one host board", between(1, 1e6))
          .required("scale_up", &C::scale_up, "the fabric inside the system")
          .required("scale_out", &C::scale_out, "the network between systems")
          .optional("expert_exchange", &C::expert_exchange,
                    "kernels of dispatch and combine; absent: they cost the latencies and "
                    "efficiencies of the fabrics")
          .required("host", &C::host, "the CPUs of the system")
          .optional("remarks", &C::remarks, "notes for readers of published tables")
          .required("all_in_power", &C::all_in_power,
                    "all that the system draws, network and storage included [W]",
                    between(Watts(1e-3), Watts(1e9)))
          .check(
              "accelerators must be a multiple of accelerators_per_node",
              [](const C& c) { return c.accelerators.value % c.accelerators_per_node == 0; },
              "accelerators_per_node")
          .check(missing_ports, "accelerator")
          .check(
              "links_per_switch must be positive and add up to scale_up.links of the accelerator",
              links_add_up, "scale_up")
          .check("planes times dies must be scale_up.links of the accelerator", planes_add_up,
                 "scale_up")
          .check(
              "all_in_power must be at least the idle power of the accelerators",
              [](const C& c) {
                return c.all_in_power.value >=
                       c.accelerator.power.idle.value * static_cast<double>(c.accelerators.value);
              },
              "all_in_power");
  return schema;
}

}  // namespace orrery
