// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/system_config.h"

#include <algorithm>
#include <string>

#include "sim/config/one_only.h"
#include "sim/config/proportional.h"
#include "sim/config/schema.h"
#include "sim/machine/common_bounds.h"

namespace orrery {
namespace {

using config::between;
using config::Bounds;
using config::Schema;
using namespace literals;

const Bounds kCountOrNone = between(0, 1e6);

const config::RegisterProportional all_in_power("accelerators", "all_in_power");
const config::RegisterProportional nameplate_power("accelerators", "nameplate_power");
const config::RegisterProportional host_power("accelerators", "host_power");

Watts idle_accelerators(const SystemConfig& c) {
  return c.accelerator.power.idle.value * static_cast<double>(c.accelerators.value);
}

const std::string kEqual =
    "all cards of a system are equal, as ranks wait for the slowest of them at every step: name "
    "the slowest; cards of another kind are a group of their own (serving.fleet)";
const config::RegisterOneOnly one_accelerator("accelerator", kEqual);
const config::RegisterOneOnly one_count("accelerators", kEqual);
const config::RegisterOneOnly one_system("system", kEqual);

std::string missing_ports(const SystemConfig& system) {
  const bool alone = !system.scale_up.keys->has_links() && system.accelerators.value == 1;
  if (alone || system.accelerator.scale_up.present()) return {};
  return system.accelerator.name +
         " has no scale_up ports: a system has one of it, with scale_up.kind none";
}

}  // namespace

SystemConfig::SystemConfig() = default;
SystemConfig::SystemConfig(const SystemConfig&) = default;
SystemConfig::SystemConfig(SystemConfig&&) noexcept = default;
SystemConfig& SystemConfig::operator=(const SystemConfig&) = default;
SystemConfig& SystemConfig::operator=(SystemConfig&&) noexcept = default;
SystemConfig::~SystemConfig() = default;

const Schema<ScaleOutConfig>& ScaleOutConfig::schema() {
  using C = ScaleOutConfig;
  static const auto schema =
      Schema<C>("scale_out", "the network between systems")
          .optional("kind", &C::kind, "topology: rail_optimized, clos, multi_plane")
          .optional("nodes_per_leaf_group", &C::nodes_per_leaf_group,
                    "systems whose NICs share leaf switches", between(1, 1e6))
          .optional(
              "switch_ports", &C::switch_ports,
              "ports of a leaf, spine and core, at the rate of a NIC; empty: as many as it takes",
              between(2, 1e5))
          .optional("leaf_groups_per_pod", &C::leaf_groups_per_pod,
                    "groups that share spines; 0: as many as the ports allow", kCountOrNone)
          .optional("oversubscription", &C::oversubscription,
                    "NIC bandwidth below a leaf, and below a pod, over that upwards",
                    between(0.01, 1e3))
          .optional("planes", &C::planes, "multi_plane: trees of their own; 0: one a rail",
                    kCountOrNone)
          .optional("routing", &C::routing, "which of the equally short paths a message takes")
          .optional("flows", &C::flows, "ecmp: hashed parts of a message", between(1, 1024))
          .optional("reduction", &C::reduction,
                    "switches reduce (SHARP): none; available: `algorithm: sharp` uses it; "
                    "automatic: auto may, too")
          .optional("reduction_bandwidth", &C::reduction_bandwidth,
                    "payload that the switches reduce a NIC, one way; 0: all that comes [GB/s]",
                    between(BytesPerSecond(0), BytesPerSecond(1e15)))
          .optional("packages_per_nic", &C::packages_per_nic,
                    "packages that share a NIC of the accelerator's scale_out bandwidth; a node "
                    "with fewer has one NIC",
                    between(1, 1e3))
          .optional("rail_aware", &C::rail_aware,
                    "messages change rails inside their node (PXN), not on spines")
          .required("latency", &C::latency,
                    "time of one step of a collective, or of a message, software included [us]",
                    kLatencyLimits)
          .optional("hop_latency", &C::hop_latency,
                    "latency of each link by which a route is longer than the shortest between "
                    "systems [ns]",
                    kLatencyLimits)
          .required("efficiency", &C::efficiency,
                    "share of the link bandwidth that collectives reach", kFractionLimits);
  return schema;
}

const Schema<HostConfig>& HostConfig::schema() {
  using C = HostConfig;
  static const auto schema =
      Schema<C>("host", "the CPUs of the system")
          .required("processors", &C::processors, "CPUs of the system", between(1, 1e6))
          .optional("memory_kind", &C::memory_kind, "LPDDR5X, DDR5, ...")
          .required("memory", &C::memory, "memory of all CPUs together [TB]",
                    between(1_MB, Bytes(1e17)))
          .optional("memory_bandwidth", &C::memory_bandwidth,
                    "bandwidth of the memory of the CPUs of a host board [GB/s]; 0: not known",
                    between(BytesPerSecond(0), BytesPerSecond(1e15)))
          .optional("links", &C::links,
                    "the accelerators' links to their host board are part of the network")
          .optional("packages_per_switch", &C::packages_per_switch,
                    "packages that share a PCIe switch and its link to the host; 0: none do",
                    kCountOrNone)
          .optional("network", &C::network,
                    "bandwidth of a host board, to storage and control [Gb/s]",
                    between(BytesPerSecond(0), BytesPerSecond(1e15)));
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
                    "packages behind one host board; 0: 8, or all of a smaller system",
                    between(0, 1e6))
          .required("scale_up", &C::scale_up, "the fabric inside the system")
          .required("scale_out", &C::scale_out, "the network between systems")
          .optional("expert_exchange", &C::expert_exchange,
                    "kernels of dispatch and combine; absent: they cost the latencies and "
                    "efficiencies of the fabrics")
          .required("host", &C::host, "the CPUs of the system")
          .optional("remarks", &C::remarks, "notes for readers of published tables")
          .optional("all_in_power", &C::all_in_power,
                    "provisioned power: what a data centre reserves for the system, network, "
                    "storage and cooling included [W]; in proportion to `accelerators` if "
                    "`extends` or `--set` changes them alone",
                    between(Watts(1e-3), Watts(1e9)))
          .optional("nameplate_power", &C::nameplate_power,
                    "nameplate power: the most that the system itself draws, by its data sheet "
                    "[W]; in proportion to `accelerators` as all_in_power is",
                    between(Watts(1e-3), Watts(1e9)))
          .optional("host_power", &C::host_power,
                    "drawn at load by all of the system but its accelerators: processors, memory, "
                    "switches, adapters, fans and conversion [W]; absent: all_in_power less the "
                    "design power of the accelerators; neither: no figures of the system's power",
                    between(Watts(0), Watts(1e9)))
          .optional("installation", &C::installation,
                    "the machine that was built of copies of the system, for readers: simulations "
                    "use none of it")
          .check("accelerators must be a multiple of accelerators_per_node",
                 [](const C& c) { return c.accelerators.value % c.packages_per_node() == 0; },
                 {"accelerators_per_node", "accelerators"})
          .check("packages_per_nic must divide accelerators_per_node",
                 [](const C& c) { return c.packages_per_node() % c.packages_per_nic() == 0; },
                 {"scale_out.packages_per_nic", "accelerators_per_node"})
          .check(missing_ports, "accelerator")
          .check([](const C& c) { return c.scale_up.keys->fault(c); })
          .check(
              "all_in_power must be at least the idle power of the accelerators",
              [](const C& c) {
                return !c.all_in_power || c.all_in_power->value >= idle_accelerators(c);
              },
              "all_in_power")
          .check("nameplate_power must not be above all_in_power",
                 [](const C& c) {
                   return !c.all_in_power || !c.nameplate_power ||
                          c.nameplate_power->value <= c.all_in_power->value;
                 },
                 {"nameplate_power", "all_in_power"});
  return schema;
}

int SystemConfig::packages_per_node() const {
  constexpr int kUsual = 8;  // of a server
  return accelerators_per_node > 0 ? accelerators_per_node : std::min(kUsual, accelerators.value);
}

const Schema<ListedPeakConfig>& ListedPeakConfig::schema() {
  using C = ListedPeakConfig;
  static const auto rates = between(FlopsPerSecond(0), FlopsPerSecond(1e21));
  static const auto schema =
      Schema<C>("fp64_peak", "the fp64 peak of the machine, as lists count it from the parts")
          .required("unit_flops", &C::unit_flops,
                    "fp64 FLOP of one unit of an accelerator in a clock", between(1, 1e6))
          .required("processors", &C::processors,
                    "fp64 peak of all processors of one system [FLOP/s]", rates)
          .optional("clock", &C::clock,
                    "clock of the units that the list counts with [MHz]; absent: the "
                    "accelerator's",
                    between(Hertz(1e6), Hertz(1e10)))
          .optional("published", &C::published, "Rpeak of the whole machine [FLOP/s]", rates);
  return schema;
}

const Schema<InstallationConfig>& InstallationConfig::schema() {
  using C = InstallationConfig;
  static const auto schema =
      Schema<C>("installation", "the machine that was built of copies of a system")
          .required("name", &C::name, "what people call the machine")
          .required("systems", &C::systems, "copies of the system in it", between(1, 1e7))
          .optional("processors", &C::processors,
                    "design power of the processors of one system that accelerators do not "
                    "include [W]",
                    between(Watts(0), Watts(1e6)))
          .optional("power", &C::power, "power of the whole machine at load, as published [W]",
                    between(Watts(1), Watts(1e11)))
          .optional("cost", &C::cost, "price of the whole machine [USD]", between(1, 1e13))
          .optional(
              "fp64_peak", &C::fp64_peak,
              "fp64 peak of the machine, as lists count it from the parts; absent: not listed");
  return schema;
}

const Schema<ExpertExchangeConfig>& ExpertExchangeConfig::schema() {
  using C = ExpertExchangeConfig;
  static const auto schema =
      Schema<C>("expert_exchange", "kernels that take tokens to their experts and back")
          .required("dispatch_start", &C::dispatch_start,
                    "launch, choice of destinations, hand-shake with the peers [us]",
                    kLatencyLimits)
          .optional("dispatch_floor", &C::dispatch_floor,
                    "least time of the transfer that follows, however few tokens [us]",
                    kLatencyLimits)
          .required("combine_start", &C::combine_start, "start of the way back [us]",
                    kLatencyLimits)
          .optional("combine_floor", &C::combine_floor, "least time of the way back [us]",
                    kLatencyLimits)
          .optional("crossing", &C::crossing,
                    "more for either, once, where the ranks are on several nodes: counts, tokens "
                    "and flags that wait for one another over more switches [us]",
                    kLatencyLimits)
          .required("normal_efficiency", &C::normal_efficiency,
                    "share of the scale-up line rate where a token goes once to each rank",
                    kFractionLimits)
          .required("low_latency_efficiency", &C::low_latency_efficiency,
                    "share of the scale-up line rate where each copy goes to its expert",
                    kFractionLimits)
          .required("scale_out_efficiency", &C::scale_out_efficiency,
                    "share of the line rate of the NICs", kFractionLimits)
          .optional("units", &C::units, "SMs that the kernels hold while they run",
                    between(0, 1e4));
  return schema;
}

}  // namespace orrery
