// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/system_config.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "sim/config/one_only.h"
#include "sim/config/proportional.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using config::between;
using config::Bounds;
using config::Schema;
using namespace literals;

const Bounds kCount = between(0, 1e6);
const Bounds kFraction = between(1e-3, 1);
const Bounds kLatency = between(Seconds(0), Seconds(1));

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

bool open_axes_exist(const ScaleUpConfig& config) {
  return std::all_of(config.open_axes.begin(), config.open_axes.end(), [&](int axis) {
    return axis >= 0 && static_cast<std::size_t>(axis) < config.torus.size();
  });
}

bool has_its_links(const ScaleUpConfig& c) {
  return c.kind != "nvswitch" || !c.links_per_switch.empty();
}
bool has_its_axes(const ScaleUpConfig& c) { return c.kind != "torus" || !c.torus.empty(); }
bool has_its_wires(const ScaleUpConfig& c) { return c.kind != "graph" || !c.wires.empty(); }
bool has_its_planes(const ScaleUpConfig& c) {
  return c.kind != "unified_bus" || (c.planes > 0 && c.l2_switches > 0);
}
bool has_its_pcie(const ScaleUpConfig& config) { return config.kind != "pcie" || config.pcie; }

std::string count_fault(const char* what, std::int64_t packages, const SystemConfig& system) {
  if (packages == system.accelerators.value) return {};
  return std::string(what) + " " + std::to_string(packages) + " packages, the system " +
         std::to_string(system.accelerators.value);
}

/// What does not fit between the torus and the packages; empty: nothing.
std::string torus_fault(const SystemConfig& system) {
  if (system.scale_up.kind != "torus") return {};
  std::int64_t packages = 1;
  for (const int size : system.scale_up.torus) packages *= size;
  return count_fault("the torus has", packages, system);
}

std::string dimensions_fault(const SystemConfig& system) {
  if (system.scale_up.kind != "dimensions" || !system.scale_up.dimensions) return {};
  double packages = 1;
  for (const DimensionConfig& axis : system.scale_up.dimensions->axes) packages *= axis.size;
  const double most = 1e18;
  return count_fault("the dimensions have", static_cast<std::int64_t>(std::min(packages, most)),
                     system);
}

/// The links of a rank in all dimensions are its ports.
std::string dimension_ports_fault(const SystemConfig& system) {
  const PortConfig& port = system.accelerator.scale_up;
  const auto& dimensions = system.scale_up.dimensions;
  if (system.scale_up.kind != "dimensions" || !dimensions || !port.present()) return {};
  BytesPerSecond needed;
  for (const DimensionConfig& axis : dimensions->axes)
    needed += axis.bandwidth.value * static_cast<double>(axis.links_of_rank());
  constexpr double kRounding = 1e-6;
  if (needed <= port.bandwidth.value * (1 + kRounding)) return {};
  return "the links of a package in all dimensions have " + print(needed) +
         " one way, its ports have " + print(port.bandwidth.value);
}

bool has_its_dimensions(const ScaleUpConfig& config) {
  return config.kind != "dimensions" || config.dimensions;
}

std::string missing_ports(const SystemConfig& system) {
  const bool alone = system.scale_up.kind == "none" && system.accelerators.value == 1;
  if (alone || system.accelerator.scale_up.present()) return {};
  return system.accelerator.name +
         " has no scale_up ports: a system has one of it, with scale_up.kind none";
}

}  // namespace

const Schema<WireConfig>& WireConfig::schema() {
  using C = WireConfig;
  static const auto schema =
      Schema<C>("wire", "parallel links between two vertices, the same both ways")
          .required("from", &C::from, "accelerator3 of the system, or any name of a switch")
          .required("to", &C::to, "accelerator3 of the system, or any name of a switch")
          .optional("kind", &C::kind, "messages take links to the host only where they must")
          .optional("links", &C::links, "parallel links", between(1, 1e6))
          .optional("bandwidth", &C::bandwidth,
                    "bandwidth of one link, one way; 0: as a port of the accelerator [GB/s]",
                    between(BytesPerSecond(0), BytesPerSecond(1e15)))
          .check(
              "a wire joins two different ends", [](const C& c) { return c.from != c.to; }, "to");
  return schema;
}

const Schema<ScaleUpConfig>& ScaleUpConfig::schema() {
  using C = ScaleUpConfig;
  static const auto schema =
      Schema<C>("scale_up", "the fabric inside one system")
          .required("kind", &C::kind,
                    "topology: nvswitch, unified_bus, mesh, torus, graph, pcie, dimensions, none")
          .optional("links_per_switch", &C::links_per_switch,
                    "nvswitch: links of a package to each switch chip", kCount)
          .optional("boards", &C::boards, "nvswitch: boards with switch chips of their own",
                    between(1, 1e3))
          .optional("trunks", &C::trunks,
                    "nvswitch: links from a chip to the same one of each other board", kCount)
          .optional("planes", &C::planes, "unified_bus: independent sub-planes", kCount)
          .optional("l2_switches", &C::l2_switches, "unified_bus: second-level chips of a plane",
                    kCount)
          .optional("torus", &C::torus, "torus: packages by axis", between(1, 1e6))
          .optional("open_axes", &C::open_axes, "torus: numbers of axes without wrap-around",
                    between(0, 9))
          .optional("cube", &C::cube, "torus: edge of the cubes that optical switches join", kCount)
          .optional("wires", &C::wires, "mesh, graph: links between packages and switches")
          .optional("pcie", &C::pcie, "pcie: switches and processors between packages")
          .optional("dimensions", &C::dimensions,
                    "dimensions: rings, meshes and switches, each across all others")
          .optional("switch_reduction", &C::switch_reduction,
                    "nvswitch, graph: the chips reduce and multicast, as from NVSwitch 3 on (NVLS)")
          .required("latency", &C::latency,
                    "time of one step of a collective, or of a message, software included [us]",
                    kLatency)
          .optional("hop_latency", &C::hop_latency,
                    "latency of each link by which a route is longer than the shortest inside [ns]",
                    kLatency)
          .optional("launch", &C::launch,
                    "start of a collective, once; where there are protocols theirs counts [us]",
                    kLatency)
          .required("efficiency", &C::efficiency,
                    "share of the link bandwidth that collectives reach", kFraction)
          .optional("bulk", &C::bulk,
                    "how large buffers are moved; absent: as small ones, and where there are "
                    "protocols as they say")
          .optional("calibration", &C::calibration,
                    "network calibration that tells about the protocols; empty: none")
          .optional_reference(
              "protocols", &C::protocols, "protocols",
              "protocols of the collective library; absent: a step costs the latency, bytes "
              "the efficiency")
          .check("nvswitch needs links_per_switch", has_its_links, "kind")
          .check(
              "protocols tell about large buffers, too: bulk is for libraries without",
              [](const C& c) { return !c.bulk || !c.protocols; }, "bulk")
          .check(
              "several boards need trunks between them",
              [](const C& c) { return c.boards == 1 || c.trunks > 0; }, "boards")
          .check("torus needs its packages by axis: torus: [4, 4, 4]", has_its_axes, "kind")
          .check("open_axes must name axes of the torus, from 0 on", open_axes_exist, "open_axes")
          .check("graph needs wires", has_its_wires, "kind")
          .check("kind dimensions needs the block dimensions: {axes: [{shape: ring, ...}, ...]}",
                 has_its_dimensions, "kind")
          .check("kind pcie needs the block pcie: {generation: 4, ...}", has_its_pcie, "kind")
          .check("unified_bus needs planes and l2_switches", has_its_planes, "kind");
  return schema;
}

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
                    "groups that share spines; 0: as many as the ports allow", kCount)
          .optional("oversubscription", &C::oversubscription,
                    "NIC bandwidth below a leaf, and below a pod, over that upwards",
                    between(0.01, 1e3))
          .optional("planes", &C::planes, "multi_plane: trees of their own; 0: one a rail", kCount)
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
                    kLatency)
          .optional("hop_latency", &C::hop_latency,
                    "latency of each link by which a route is longer than the shortest between "
                    "systems [ns]",
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
          .required("memory", &C::memory, "memory of all CPUs together [TB]",
                    between(1_MB, Bytes(1e17)))
          .optional("memory_bandwidth", &C::memory_bandwidth,
                    "bandwidth of the memory of the CPUs of a host board [GB/s]; 0: not known",
                    between(BytesPerSecond(0), BytesPerSecond(1e15)))
          .optional("links", &C::links,
                    "the accelerators' links to their host board are part of the network")
          .optional("packages_per_switch", &C::packages_per_switch,
                    "packages that share a PCIe switch and its link to the host; 0: none do",
                    kCount)
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
          .check(torus_fault, {"scale_up.torus", "accelerators", "scale_up.kind"})
          .check(dimensions_fault, {"scale_up.dimensions.axes", "accelerators", "scale_up.kind"})
          .check(dimension_ports_fault,
                 {"scale_up.dimensions.axes", "accelerator.scale_up.bandwidth", "scale_up.kind"})
          .check("boards must divide accelerators",
                 [](const C& c) { return c.accelerators.value % c.scale_up.boards == 0; },
                 {"scale_up.boards", "accelerators"})
          .check(
              "links_per_switch must be positive and add up to scale_up.links of the accelerator",
              links_add_up,
              {"scale_up.links_per_switch", "accelerator.scale_up.links", "scale_up.kind"})
          .check("planes times dies must be scale_up.links of the accelerator", planes_add_up,
                 {"scale_up.planes", "accelerator.dies", "accelerator.scale_up.links",
                  "scale_up.kind"})
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

int SystemConfig::packages_per_nic() const {
  return std::min(scale_out.packages_per_nic, packages_per_node());
}

}  // namespace orrery
