// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/scale_up_config.h"

#include <vector>

#include "sim/config/schema.h"
#include "sim/machine/common_bounds.h"

namespace orrery {
namespace {

using config::between;
using config::Schema;
using namespace literals;

std::vector<std::string> topologies_with(const std::string& key) {
  std::vector<std::string> names;
  for (const auto& [name, item] : ScaleUpRegistry::items())
    if (item.entry.record().find(key) != nullptr) names.push_back(name);
  return names;
}

Schema<ScaleUpConfig> schema_of(const std::string& kind, const ScaleUpRegistry::Item& topology) {
  using C = ScaleUpConfig;
  Schema<C> schema(kind, topology.help, [kind] {
    auto made = std::make_shared<C>();
    made->set_kind(kind);
    return made;
  });
  schema.required("kind", &C::kind, "topology: its own keys depend on it")
      .include(topology.entry.record(), topology.entry.keys_in)
      .optional("switch_reduction", &C::switch_reduction,
                "nvswitch, graph: the chips reduce and multicast, as from NVSwitch 3 on (NVLS)")
      .required("latency", &C::latency,
                "time of one step of a collective, or of a message, software included [us]",
                kLatencyLimits)
      .optional("hop_latency", &C::hop_latency,
                "latency of each link by which a route is longer than the shortest inside [ns]",
                kLatencyLimits)
      .optional("launch", &C::launch,
                "start of a collective, once; where there are protocols theirs counts [us]",
                kLatencyLimits)
      .required("efficiency", &C::efficiency, "share of the link bandwidth that collectives reach",
                kFractionLimits)
      .optional("bulk", &C::bulk,
                "how large buffers are moved; absent: as small ones, and where there are "
                "protocols as they say")
      .optional("calibration", &C::calibration,
                "network calibration of the protocols; by default none")
      .optional_reference("protocols", &C::protocols, "protocols",
                          "protocols of the collective library; absent: a step costs the latency, "
                          "bytes the efficiency")
      .elsewhere(topologies_with)
      .check(
          "protocols tell about large buffers, too: bulk is for libraries without",
          [](const C& c) { return !c.bulk || !c.protocols; }, "bulk");
  return schema;
}

}  // namespace

void ScaleUpConfig::set_kind(const std::string& name) {
  const ScaleUpEntry& topology =
      ScaleUpRegistry::at("scale-up topology", name, "system.scale_up.kind");
  kind = name;
  keys = topology.make();
}

const config::Choices& ScaleUpConfig::choices() {
  static const config::Choices all = [] {
    config::Choices made{.tag = "kind", .fallback = {}, .records = {}};
    for (const auto& [name, topology] : ScaleUpRegistry::items()) {
      const auto schema = std::make_shared<const Schema<ScaleUpConfig>>(schema_of(name, topology));
      made.records.emplace(name, [schema]() -> const config::Record& { return schema->record(); });
    }
    return made;
  }();
  return all;
}

const Schema<BulkConfig>& BulkConfig::schema() {
  using C = BulkConfig;
  static const auto schema =
      Schema<C>("bulk", "how large buffers are moved inside a system")
          .required("from", &C::from, "smallest buffer [MiB]", between(1_B, 1000_TB))
          .required("start", &C::start, "start of a collective, once, in place of launch [us]",
                    kLatencyLimits)
          .required("peer", &C::peer, "each other rank of the group in its node [us]",
                    kLatencyLimits)
          .required("efficiency", &C::efficiency, "payload share of the line rate", kFractionLimits)
          .required("sum_efficiency", &C::sum_efficiency,
                    "payload share of the line rate where bytes are summed", kFractionLimits);
  return schema;
}

}  // namespace orrery

namespace orrery::config::detail {

Type TypeOf<ScaleUpConfig>::make() {
  Type type;
  type.kind = TypeKind::kChoice;
  type.choices = &ScaleUpConfig::choices;
  type.choose = [](void* value, const std::string& kind) -> void* {
    auto& scale_up = *static_cast<ScaleUpConfig*>(value);
    scale_up = ScaleUpConfig();
    scale_up.set_kind(kind);
    return value;
  };
  return type;
}

}  // namespace orrery::config::detail
