// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/infragraph.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "sim/config/diagnostics.h"
#include "sim/config/load.h"
#include "sim/config/node.h"
#include "sim/units/spelling.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

/// Vertices that a system of kind `graph` may have.
constexpr std::size_t kMostInfraVertices = 2048;
constexpr std::size_t kMostInfraEdges = 1 << 20;
constexpr int kMostInfraCount = 1 << 20;
constexpr int kDeepestDevice = 8;

/// Part of a list: from `first`, every `step`th, before `end`.
struct InfraSlice {
  std::string name;
  int first = 0, end = 0, step = 1;
};

class InfraReader {
 public:
  explicit InfraReader(const std::string& path) {
    const config::Node file = config::load_file(path, diagnostics_);
    diagnostics_.throw_if_errors();
    const config::Node* inner = file.find("infrastructure");
    root_ = inner != nullptr ? *inner : file;
    if (!root_.is_map())
      fail(root_, "expected the devices, links, instances and edges of InfraGraph");
    if (file.find("annotations") != nullptr || root_.find("annotations") != nullptr)
      graph_.notes.emplace_back("annotations: ranks are numbered in the order of instances");
  }

  InfraGraph graph() {
    if (const config::Node* name = root_.find("name")) graph_.name = text(*name);
    for (const config::Node& device : list_at(root_, "devices")) read_device(device);
    for (const config::Node& link : maybe_list(root_, "links")) add_link(link, links_);
    for (const config::Node& instance : list_at(root_, "instances")) read_instance(instance);
    for (const config::Node& edge : maybe_list(root_, "edges")) {
      const Ends one = ends_of_instance(at(edge, "ep1"));
      const Ends other = ends_of_instance(at(edge, "ep2"));
      join(edge, one, other, links_);
    }
    if (transfers_ > 0)
      graph_.notes.push_back(fmt::format(
          "bandwidth in transfers a second: {} links, whose lanes are not told", transfers_));
    return std::move(graph_);
  }

 private:
  struct Link {
    std::optional<BytesPerSecond> bandwidth;
    std::optional<Seconds> latency;
  };
  using Links = std::map<std::string, Link>;
  struct Component {
    std::string name, type;
    int count = 0;
    bool is_device = false;
  };
  struct Device {
    std::vector<Component> components;
    Links links;
    const config::Node* node = nullptr;

    const Component* find(const std::string& name) const {
      const auto found = std::find_if(components.begin(), components.end(),
                                      [&](const Component& c) { return c.name == name; });
      return found == components.end() ? nullptr : &*found;
    }
  };
  struct Instance {
    std::string device;
    int count = 0;
  };
  using Ends = std::vector<std::size_t>;

  [[noreturn]] void fail(const config::Node& node, std::string message, std::string meant = {}) {
    diagnostics_.error(node.where(), std::max(1, node.length()), std::move(message),
                       std::move(meant));
    diagnostics_.throw_if_errors();
    throw std::logic_error("unreachable: an error was reported");
  }
  [[noreturn]] void fail_twice(const config::Node& node, const char* kind,
                               const std::string& name) {
    fail(node, fmt::format("{} '{}' is there twice", kind, name));
  }
  /// What a map has under a name that `node` refers to.
  template <class Value>
  const Value& named(const std::map<std::string, Value>& all, const std::string& name,
                     const char* kind, const config::Node& node) {
    const auto found = all.find(name);
    if (found != all.end()) return found->second;
    std::vector<std::string> known;
    known.reserve(all.size());
    for (const auto& [key, value] : all) known.push_back(key);
    fail(node, fmt::format("there is no {} '{}'", kind, name), nearest_name(name, known));
  }

  const config::Node& at(const config::Node& map, const char* key) {
    const config::Node* value = map.is_map() ? map.find(key) : nullptr;
    if (value == nullptr) fail(map, fmt::format("missing key '{}'", key));
    return *value;
  }
  const std::vector<config::Node>& list(const config::Node& node) {
    if (!node.is_sequence()) fail(node, "expected a list");
    return node.items();
  }
  const std::vector<config::Node>& list_at(const config::Node& map, const char* key) {
    return list(at(map, key));
  }
  const std::vector<config::Node>& maybe_list(const config::Node& map, const char* key) {
    static const std::vector<config::Node> none;
    const config::Node* value = map.find(key);
    return value == nullptr || value->is_null() ? none : list(*value);
  }
  const std::string& text(const config::Node& node) {
    if (!node.is_scalar() || node.text().empty()) fail(node, "expected a text");
    return node.text();
  }
  const std::string& text_at(const config::Node& map, const char* key) {
    return text(at(map, key));
  }
  int count_at(const config::Node& map) {
    const config::Node& node = at(map, "count");
    const auto count = whole_number<int>(text(node));
    if (!count || *count < 1 || *count > kMostInfraCount)
      fail(node, fmt::format("expected a count from 1 to {}", kMostInfraCount));
    return *count;
  }
  double number(const config::Node& node) {
    const auto value = whole_number<double>(text(node));
    constexpr double kMostNumber = 1e12;
    if (!value || !(*value >= 0) || *value > kMostNumber)
      fail(node, "expected a number, not below 0");
    return *value;
  }

  /// The value of a unit that `choice` names, or the only one that is there.
  template <class Use>
  void read_choice(const config::Node& node, const std::vector<const char*>& units,
                   const Use& use) {
    const config::Node* choice = node.find("choice");
    for (const char* unit : units) {
      const config::Node* value = node.find(unit);
      if (choice != nullptr ? text(*choice) != unit : value == nullptr) continue;
      use(std::string(unit), number(at(node, unit)));
      return;
    }
    if (choice != nullptr) fail(*choice, "unknown unit '" + text(*choice) + "'");
  }

  void add_link(const config::Node& node, Links& links) {
    Link link;
    const std::string& name = text_at(node, "name");
    const config::Node* physical = node.find("physical");
    const auto property = [&](const char* key) -> const config::Node* {
      return physical == nullptr ? nullptr : physical->find(key);
    };
    if (const config::Node* bandwidth = property("bandwidth")) {
      read_choice(*bandwidth,
                  {"gigabits_per_second", "gigabytes_per_second", "gigatransfers_per_second"},
                  [&](const std::string& unit, double value) {
                    if (unit == "gigatransfers_per_second") {
                      ++transfers_;
                    } else if (value > 0) {
                      link.bandwidth =
                          BytesPerSecond(value * 1e9 / (unit == "gigabits_per_second" ? 8 : 1));
                    }
                  });
    }
    if (const config::Node* latency = property("latency")) {
      read_choice(*latency, {"ms", "us", "ns"}, [&](const std::string& unit, double value) {
        link.latency = Seconds(value * (unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9));
      });
    }
    if (!links.emplace(name, link).second) fail_twice(node, "link", name);
  }

  void read_device(const config::Node& node) {
    const std::string& name = text_at(node, "name");
    Device device;
    device.node = &node;
    for (const config::Node& part : list_at(node, "components")) {
      Component component{text_at(part, "name"), text_at(part, "choice"), count_at(part), false};
      component.is_device = component.type == "device";
      if (component.type == "custom") component.type = text_at(at(part, "custom"), "type");
      if (device.find(component.name) != nullptr) fail_twice(part, "component", component.name);
      device.components.push_back(std::move(component));
    }
    for (const config::Node& link : maybe_list(node, "links")) add_link(link, device.links);
    if (!devices_.emplace(name, std::move(device)).second) fail_twice(node, "device", name);
  }

  const Device& device_of(const std::string& name, const config::Node& node) {
    return named(devices_, name, "device", node);
  }

  void read_instance(const config::Node& node) {
    const std::string& name = text_at(node, "name");
    const config::Node& device = at(node, "device");
    const Instance instance{text(device), count_at(node)};
    if (!instances_.emplace(name, instance).second) fail_twice(node, "instance", name);
    device_of(instance.device, device);
    for (int i = 0; i < instance.count; ++i) {
      expand(fmt::format("{}.{}", name, i), instance.device, device, 0);
      ++graph_.copies;
    }
  }

  /// Adds the components of a copy of a device, and its edges.
  void expand(const std::string& prefix, const std::string& name, const config::Node& place,
              int depth) {
    if (depth > kDeepestDevice) fail(place, "device '" + name + "' is part of itself");
    const Device& device = device_of(name, place);
    for (const Component& component : device.components) {
      for (int i = 0; i < component.count; ++i) {
        const std::string part = fmt::format("{}.{}.{}", prefix, component.name, i);
        if (component.is_device) {
          expand(part, component.name, *device.node, depth + 1);
          continue;
        }
        if (graph_.vertices.size() == kMostInfraVertices)
          fail(place, fmt::format("more than {} components, which is the most of a system of kind "
                                  "graph",
                                  kMostInfraVertices));
        by_name_.emplace(part, graph_.vertices.size());
        graph_.vertices.push_back({part, component.type, graph_.copies});
      }
    }
    for (const config::Node& edge : maybe_list(*device.node, "edges")) {
      const Ends one = ends_in({prefix}, name, at(edge, "ep1"));
      const Ends other = ends_in({prefix}, name, at(edge, "ep2"));
      join(edge, one, other, device.links);
    }
  }

  InfraSlice slice(const std::string& part, int count, const config::Node& node) {
    InfraSlice slice{part.substr(0, part.find('[')), 0, count, 1};
    const std::size_t open = part.find('[');
    if (open == std::string::npos) return slice;
    if (part.back() != ']') fail(node, "expected a slice as in 'nic[0:2]'");
    std::string inside = part.substr(open + 1, part.size() - open - 2);
    std::erase(inside, ' ');
    std::vector<std::string_view> pieces;
    for (std::size_t at = 0; at <= inside.size(); at += pieces.back().size() + 1)
      pieces.push_back(std::string_view(inside).substr(at, inside.find(':', at) - at));
    int* const values[] = {&slice.first, &slice.end, &slice.step};
    if (pieces.size() > std::size(values)) fail(node, "expected a slice as in 'nic[0:2]'");
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].empty() && pieces.size() > 1) continue;
      const auto value = whole_number<int>(pieces[i]);
      if (!value || *value < (i == 2 ? 1 : 0)) fail(node, "expected a slice as in 'nic[0:2]'");
      *values[i] = *value;
    }
    if (pieces.size() == 1) slice.end = slice.first + 1;
    if (slice.first >= count || slice.end > count || slice.first >= slice.end)
      fail(node, fmt::format("'{}' is out of range: there are {}", part, count));
    return slice;
  }

  /// Vertices that an end names below copies of a device: "cx5[0:2].port[0]".
  Ends ends_in(std::vector<std::string> prefixes, std::string device, const config::Node& end) {
    const config::Node& node = at(end, "component");
    std::string path = text(node);
    const config::Node* composed = end.find("device");
    if (composed != nullptr && !composed->is_null()) path = text(*composed) + "." + path;
    std::size_t begin = 0;
    bool is_device = true;
    while (begin <= path.size()) {
      const std::size_t point = std::min(path.find('.', begin), path.size());
      const std::string part = path.substr(begin, point - begin);
      begin = point + 1;
      const Component* component =
          is_device ? component_of(device, part.substr(0, part.find('[')), node) : nullptr;
      if (component == nullptr) fail(node, "'" + part + "' is no part of a component");
      const InfraSlice taken = slice(part, component->count, node);
      std::vector<std::string> longer;
      for (const std::string& prefix : prefixes)
        for (int i = taken.first; i < taken.end; i += taken.step)
          longer.push_back(fmt::format("{}.{}.{}", prefix, taken.name, i));
      if (longer.size() > kMostInfraVertices) fail(node, "names too many components");
      prefixes = std::move(longer);
      is_device = component->is_device;
      device = component->name;
    }
    if (is_device) fail(node, "names a device; a component of it has to follow: '.port[0]'");
    Ends ends;
    for (const std::string& name : prefixes) ends.push_back(by_name_.at(name));
    return ends;
  }

  const Component* component_of(const std::string& device, const std::string& name,
                                const config::Node& node) {
    const Device& of = device_of(device, node);
    if (const Component* found = of.find(name)) return found;
    std::vector<std::string> known;
    for (const Component& component : of.components) known.push_back(component.name);
    fail(node, fmt::format("device '{}' has no component '{}'", device, name),
         nearest_name(name, known));
  }

  Ends ends_of_instance(const config::Node& end) {
    const config::Node& node = at(end, "instance");
    const std::string& written = text(node);
    const std::string name = written.substr(0, written.find('['));
    const Instance& instance = named(instances_, name, "instance", node);
    const InfraSlice taken = slice(written, instance.count, node);
    std::vector<std::string> prefixes;
    for (int i = taken.first; i < taken.end; i += taken.step)
      prefixes.push_back(fmt::format("{}.{}", name, i));
    return ends_in(std::move(prefixes), instance.device, end);
  }

  void join(const config::Node& edge, const Ends& one, const Ends& other, const Links& links) {
    const config::Node& name = at(edge, "link");
    const Link& link = named(links, text(name), "link", name);
    const config::Node& written = at(edge, "scheme");
    const std::string& scheme = text(written);
    const auto add = [&](std::size_t from, std::size_t to) {
      if (from == to) return;
      if (graph_.edges.size() == kMostInfraEdges) fail(written, "too many edges");
      graph_.edges.push_back({from, to, link.bandwidth, link.latency});
    };
    if (scheme == "many2many") {
      for (const std::size_t from : one)
        for (const std::size_t to : other) add(from, to);
    } else if (scheme == "one2one") {
      for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) add(one[i], other[i]);
    } else if (scheme == "ring") {
      Ends all = one;
      for (const std::size_t end : other)
        if (std::find(all.begin(), all.end(), end) == all.end()) all.push_back(end);
      for (std::size_t i = 0; i + 1 < all.size(); ++i) add(all[i], all[i + 1]);
      if (all.size() > 2) add(all.back(), all.front());
    } else {
      fail(written, "unknown scheme '" + scheme + "'",
           nearest_name(scheme, {"one2one", "many2many", "ring"}));
    }
  }

  config::Diagnostics diagnostics_;
  config::Node root_;
  std::map<std::string, Device> devices_;
  std::map<std::string, Instance> instances_;
  Links links_;
  std::map<std::string, std::size_t> by_name_;
  int transfers_ = 0;
  InfraGraph graph_;
};

}  // namespace

InfraGraph read_infragraph(const std::string& path) { return InfraReader(path).graph(); }

}  // namespace orrery
