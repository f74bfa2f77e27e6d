// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/expand.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/app/experiments/settings.h"
#include "sim/app/experiments/simulate.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// Text that is another one for another value.
void append_text(const config::Node& node, std::string& text) {
  if (node.is_scalar()) text.append(node.quoted() ? "'" : " ").append(node.text());
  for (const config::Node& item : node.items()) append_text(item, text.append(1, '['));
  for (const auto& entry : node.entries())
    append_text(entry.value, text.append(1, '{').append(entry.key).append(1, ':'));
  text.append(1, '\n');
}

/// The points of one variant of a case.
class Expander {
 public:
  explicit Expander(Sweep& sweep) : sweep_(sweep) {}

  void add_case(std::uint32_t index) {
    const config::Node& described = sweep_.node.find("cases")->items()[index];
    std::vector<const config::Node*> variants;
    if (const config::Node* list = described.find("variants"))
      for (const config::Node& item : list->items()) variants.push_back(&item);
    if (variants.empty()) variants.push_back(nullptr);
    for (const config::Node* variant : variants) add_variant(index, described, variant);
  }

  void throw_errors() const {
    if (!errors_.empty()) throw config::ConfigError(errors_, {config::Diagnostic{}});
  }

 private:
  const config::Assignment* keep(const config::Node::Entry& entry, const config::Node& value) {
    sweep_.settings.push_back({entry.key, value, entry.key_origin});
    return &sweep_.settings.back();
  }

  void add_variant(std::uint32_t index, const config::Node& described,
                   const config::Node* variant) {
    SweepPoint point;
    point.case_index = index;
    std::string name = sweep_.config.cases[index].name;
    if (variant != nullptr) {
      for (const auto& entry : variant->entries()) {
        if (entry.key == "name") {
          name = entry.value.text();
        } else {
          point.settings.push_back(keep(entry, entry.value));
        }
      }
    }
    sweep_.names.push_back(std::move(name));
    point.name = &sweep_.names.back();
    point.of_variant = static_cast<std::uint32_t>(point.settings.size());
    const config::Node* axes = described.find("axes");
    const config::Node* grid = axes != nullptr ? axes->find("grid") : nullptr;
    const config::Node* list = axes != nullptr ? axes->find("list") : nullptr;
    if (grid != nullptr || list == nullptr) add_grid(point, grid);
    if (list == nullptr) return;
    for (const config::Node& item : list->items()) {
      SweepPoint listed = point;
      for (const auto& entry : item.entries()) listed.settings.push_back(keep(entry, entry.value));
      begin_block();
      add_point(listed);
    }
  }

  void add_grid(SweepPoint point, const config::Node* grid) {
    std::vector<std::vector<const config::Assignment*>> axes;
    if (grid != nullptr) {
      for (const auto& axis : grid->entries()) {
        axes.emplace_back();
        for (const config::Node& value : axis.value.items())
          axes.back().push_back(keep(axis, value));
        point.settings.push_back(axes.back().front());
      }
    }
    begin_block();
    std::vector<std::size_t> at(axes.size());
    for (;;) {
      add_point(point);
      std::size_t axis = axes.size();
      while (axis > 0 && ++at[axis - 1] == axes[axis - 1].size()) at[--axis] = 0;
      for (std::size_t i = axis == 0 ? 0 : axis - 1; i < axes.size(); ++i)
        point.settings[point.of_variant + i] = axes[i][at[i]];
      if (axis == 0) return;
    }
  }

  /// Points that set the same keys follow.
  void begin_block() {
    groups_.clear();
    replaceable_.clear();
    known_ = false;
  }

  /// What the points of a group have in common: all that is not replaced.
  std::string key_of(const SweepPoint& point) const {
    std::string key;
    for (const config::Assignment* setting : point.settings) {
      if (std::binary_search(replaceable_.begin(), replaceable_.end(), setting->path)) continue;
      append_text(setting->value, key.append(setting->path).append(1, '='));
    }
    return key;
  }

  void add_point(const SweepPoint& point) {
    sweep_.points.push_back(point);
    SweepPoint& added = sweep_.points.back();
    try {
      added.group = group_of(added);
      if (added.group == SweepPoint::kNoGroup) return;
      PointGroup& group = *sweep_.groups[added.group];
      add_values(group, added);
      added.identity = group.identity(added.settings);
    } catch (const config::ConfigError& error) {
      add_error(error.what());
    }
  }

  std::uint32_t group_of(const SweepPoint& point) {
    if (known_) {
      const auto found = groups_.find(key_of(point));
      if (found != groups_.end()) return found->second;
    }
    LoadedExperiment base = sweep_.load_whole(point);
    if (!base.contradiction.empty()) {
      const std::size_t place = sweep_.points.size() - 1;
      sweep_.impossible[place] = {base.contradiction, configuration_of(base)};
      return SweepPoint::kNoGroup;
    }
    narrow(PointGroup::replaceable(base, point.settings));
    const auto index = static_cast<std::uint32_t>(sweep_.groups.size());
    sweep_.groups.push_back(std::make_unique<PointGroup>(std::move(base), replaceable_));
    groups_.emplace(key_of(point), index);
    return index;
  }

  /// Paths that cannot be replaced in all experiments of the block tell its groups apart.
  void narrow(const std::vector<std::string>& replaceable) {
    std::vector<std::string> common = replaceable;
    if (known_) {
      std::erase_if(common, [&](const std::string& path) {
        return !std::binary_search(replaceable_.begin(), replaceable_.end(), path);
      });
      if (common != replaceable_) groups_.clear();
    }
    known_ = true;
    replaceable_ = std::move(common);
  }

  /// A value that no point of the group had before is tried once.
  void add_values(PointGroup& group, const SweepPoint& point) {
    bool tried = false;
    for (const config::Assignment* setting : point.settings) {
      if (group.knows(*setting) || !group.replaces(setting->path)) continue;
      try {
        group.add(*setting);
      } catch (const UnitError&) {
        sweep_.load_whole(point);  // says what is wrong, and where
        throw;
      }
      if (tried || group.load(point.settings)) continue;
      sweep_.load_whole(point);
      tried = true;
    }
  }

  void add_error(const std::string& text) {
    if (errors_.find(text) == std::string::npos)
      errors_ += text + (text.ends_with('\n') ? "" : "\n");
  }

  Sweep& sweep_;
  std::string errors_;
  // Of the points that set the same keys:
  bool known_ = false;                    ///< whether the rest is
  std::vector<std::string> replaceable_;  ///< paths, sorted
  std::map<std::string, std::uint32_t> groups_;
};

}  // namespace

void expand(Sweep& sweep) {
  Expander expander(sweep);
  for (std::uint32_t index = 0; index < sweep.config.cases.size(); ++index)
    expander.add_case(index);
  expander.throw_errors();
}

}  // namespace orrery
