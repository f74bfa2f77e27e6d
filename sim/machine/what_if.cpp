// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/what_if.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "sim/config/changes.h"
#include "sim/config/proportional.h"
#include "sim/machine/accelerator_config.h"
#include "sim/machine/clock.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

template <class T>
bool sold(const Fact<T>& fact) {
  return !fact.source.empty();
}

template <class T>
bool sold(const std::optional<Fact<T>>& fact) {
  return fact && sold(*fact);
}

double unit_clocks(const ComputeConfig& compute) {
  return compute.units.value * compute.clock.value.base();
}

/// To four digits, for people.
template <class T>
T rounded(T value) {
  const double step = std::pow(10, std::floor(std::log10(value.base())) - 3);
  return T(std::round(value.base() / step) * step);
}

double number_in(int value) { return value; }
double number_in(double value) { return value; }
template <class T>
double number_in(T value) {
  return value.base();
}

/// One what-if of a device: what was written, and what follows it.
class WhatIf {
 public:
  WhatIf(AcceleratorConfig& device, const AcceleratorConfig& before, const config::Changes& changes)
      : device_(device), before_(before), changes_(changes) {
    device_.followed = before.followed;
  }

  void follow() {
    follow_clock();
    const double units = changed("compute.units", before_.compute.units, device_.compute.units);
    const bool clocked = wrote("compute.clock", device_.compute.clock) ||
                         wrote("compute.boost_clock", device_.compute.boost_clock);
    const double clock = clocked ? ratio(before_.compute.clock, device_.compute.clock) : 1;
    const double boost = clocked ? boost_clock(device_) / boost_clock(before_) : 1;
    follow_matrix(units * clock);
    follow_vector(units * boost, boost);
    follow_memory();
    follow_ports();
    keep_as_sold();
  }

 private:
  /// Whether the what-if wrote a value, as a figure without a source.
  template <class T>
  bool wrote(const std::string& path, const Fact<T>& fact) const {
    return fact.source.empty() && changes_.has(path);
  }
  template <class T>
  bool wrote(const std::string& path, const std::optional<Fact<T>>& fact) const {
    return fact && wrote(path, *fact);
  }

  template <class T>
  static double ratio(const Fact<T>& before, const Fact<T>& after) {
    return number_in(after.value) / number_in(before.value);
  }

  /// The factor of a figure that the what-if wrote; 1: it did not.
  template <class T>
  double changed(const std::string& path, const Fact<T>& before, const Fact<T>& after) const {
    return wrote(path, after) ? ratio(before, after) : 1;
  }

  /// Gives a figure that the what-if did not write the value that it had before, times a factor.
  template <class T>
  void scale(const std::string& path, const Fact<T>& before, Fact<T>& fact, double factor) {
    if (!changes_.has(path)) set(path, before, fact, before.value * factor);
  }

  template <class T>
  void set(const std::string& path, const Fact<T>& before, Fact<T>& fact, T value) {
    fact = before;
    if (value == before.value) return;
    fact.value = value;
    fact.nameplate.reset();
    device_.followed.push_back(path + ": " + print(rounded(before.value)) + " became " +
                               print(rounded(value)));
  }

  template <class T>
  void scale(const std::string& path, const std::optional<Fact<T>>& before,
             std::optional<Fact<T>>& fact, double factor) {
    if (before && fact) scale(path, *before, *fact, factor);
  }

  /// One domain has both clocks.
  void follow_clock() {
    ComputeConfig& compute = device_.compute;
    const bool clock = wrote("compute.clock", compute.clock);
    const bool boost = wrote("compute.boost_clock", compute.boost_clock);
    const double clocks = clock ? ratio(before_.compute.clock, compute.clock) : 1;
    if (boost && !clock)
      scale("compute.clock", before_.compute.clock, compute.clock,
            compute.boost_clock->value / boost_clock(before_));
    else if (!clock)
      scale("compute.clock", before_.compute.clock, compute.clock, 1);
    scale("compute.boost_clock", before_.compute.boost_clock, compute.boost_clock, clocks);
  }

  /// The factor of the FLOPs of a unit and clock. Where the device did not tell
  /// them, those of its rate count.
  double per_clock(Precision precision) const {
    const auto& after = device_.compute.matrix_per_clock;
    const auto& before = before_.compute.matrix_per_clock;
    const auto now = after.find(precision), was = before.find(precision);
    if (now == after.end() || !wrote(per_clock_of(precision), now->second)) return 1;
    if (was != before.end()) return ratio(was->second, now->second);
    const double rate = before_.compute.matrix.at(precision).value.base();
    return now->second.value * unit_clocks(before_.compute) / rate;
  }

  static std::string per_clock_of(Precision precision) {
    return std::string("compute.matrix_per_clock.") + to_string(precision);
  }

  void follow_matrix(double factor) {
    ComputeConfig& compute = device_.compute;
    for (auto& [precision, rate] : compute.matrix) {
      const std::string name = to_string(precision);
      const auto before = before_.compute.matrix.find(precision);
      if (before == before_.compute.matrix.end()) continue;
      scale("compute.matrix." + name, before->second, rate, factor * per_clock(precision));
      const auto inference = compute.matrix_inference.find(precision);
      const auto was = before_.compute.matrix_inference.find(precision);
      if (inference != compute.matrix_inference.end() &&
          was != before_.compute.matrix_inference.end())
        scale("compute.matrix_inference." + name, was->second, inference->second,
              ratio(before->second, rate));
    }
  }

  /// What holds at the boost clock: rates of all units, and what the same clock drives.
  void follow_vector(double all_units, double boost) {
    scale("compute.vector", before_.compute.vector, device_.compute.vector, all_units);
    scale("compute.special", before_.compute.special, device_.compute.special, all_units);
    scale("memory.exchange", before_.memory.exchange, device_.memory.exchange, all_units);
    if (device_.core && before_.core)
      scale("core.shared_bandwidth", before_.core->shared_bandwidth, device_.core->shared_bandwidth,
            boost);
    if (device_.cache && before_.cache)
      scale("cache.bandwidth", before_.cache->bandwidth, device_.cache->bandwidth, boost);
  }

  /// The factor of a figure of the memory organisation.
  template <class T>
  double organised(const std::string& name, const std::optional<Fact<T>>& before,
                   const std::optional<Fact<T>>& after) const {
    return before && after ? changed("memory." + name, *before, *after) : 1;
  }

  void follow_memory() {
    MemoryConfig& memory = device_.memory;
    const MemoryConfig& before = before_.memory;
    const bool known = before.stacks || !before.sold;
    const MemoryConfig& pins = known ? before : *before.sold;
    const double stacks = organised("stacks", pins.stacks, memory.stacks);
    const double pin = organised("bus_width", pins.bus_width, memory.bus_width) *
                       organised("data_rate", pins.data_rate, memory.data_rate);
    scale("memory.bandwidth", before.bandwidth, memory.bandwidth, stacks * pin);
    scale("memory.capacity", before.capacity, memory.capacity, stacks);
    const bool other_pins = wrote("memory.stacks", memory.stacks) ||
                            wrote("memory.bus_width", memory.bus_width) ||
                            wrote("memory.data_rate", memory.data_rate);
    const bool bandwidth = wrote("memory.bandwidth", memory.bandwidth);
    if (bandwidth || other_pins || before.sold)
      memory.sold = before.sold ? before.sold : std::make_shared<const MemoryConfig>(before);
    // A bandwidth alone says nothing of pins.
    if (!(bandwidth && !other_pins) && known) return;
    memory.stacks.reset();
    memory.bus_width.reset();
    memory.data_rate.reset();
  }

  void follow_port(const std::string& name, const PortConfig& before, PortConfig& port) {
    if (!before.present() || !port.present() || before.links.value == 0) return;
    scale(name + ".bandwidth", before.bandwidth, port.bandwidth,
          changed(name + ".links", before.links, port.links));
  }

  void follow_ports() {
    follow_port("scale_up", before_.scale_up, device_.scale_up);
    follow_port("scale_out", before_.scale_out, device_.scale_out);
    follow_port("host_link", before_.host_link, device_.host_link);
  }

  /// Whether the what-if changed what the power cap bounds.
  bool changed_power() const {
    const ComputeConfig& compute = device_.compute;
    const auto& per_clocks = compute.matrix_per_clock;
    return wrote("compute.units", compute.units) || wrote("compute.clock", compute.clock) ||
           wrote("compute.boost_clock", compute.boost_clock) ||
           std::any_of(per_clocks.begin(), per_clocks.end(), [&](const auto& entry) {
             return wrote(per_clock_of(entry.first), entry.second);
           });
  }

  /// Energies of products that are written are those of another silicon, whose voltages go with its
  /// own clock.
  bool other_silicon() const {
    const auto& energies = device_.energy.matrix;
    return std::any_of(energies.begin(), energies.end(), [&](const auto& entry) {
      return wrote(std::string("energy.matrix.") + to_string(entry.first), entry.second);
    });
  }

  /// The device whose kernels were measured: the oldest before all what-ifs.
  void keep_as_sold() {
    if (other_silicon() || (!changed_power() && !before_.sold)) return;
    const AcceleratorConfig& first = before_.sold ? *before_.sold : before_;
    auto sold = std::make_shared<AcceleratorConfig>(device_);
    sold->power.limit.reset();
    sold->compute = first.compute;
    sold->core = first.core;
    sold->cache = first.cache;
    sold->memory = first.memory;
    device_.sold = std::move(sold);
  }

  AcceleratorConfig& device_;
  const AcceleratorConfig& before_;
  const config::Changes& changes_;
};

}  // namespace

void follow_changes(AcceleratorConfig& device, const AcceleratorConfig& before,
                    const config::Changes& changes) {
  WhatIf(device, before, changes).follow();
}

BytesPerSecond bandwidth_of_pins(const MemoryConfig& memory) {
  return memory.data_rate->value *
         (static_cast<double>(memory.stacks->value) * memory.bus_width->value);
}

void keep_without_limit(AcceleratorConfig& device) {
  if (device.sold || !device.power.limit) return;
  auto sold = std::make_shared<AcceleratorConfig>(device);
  sold->power.limit.reset();
  device.sold = std::move(sold);
}

std::vector<std::string> followed(const SystemConfig& system) {
  std::vector<std::string> all = system.accelerator.followed;
  const auto add = [&](const char* name, const std::optional<Fact<Watts>>& power) {
    if (!power || !power->source.starts_with(config::kDerived)) return;
    const std::size_t begin = config::kDerived.size();
    all.push_back(name + (" became " + print(rounded(power->value))) + ": " +
                  power->source.substr(begin, power->source.find(';') - begin) +
                  "; write it if hosts and fans draw otherwise");
  };
  add("all_in_power", system.all_in_power);
  add("nameplate_power", system.nameplate_power);
  add("host_power", system.host_power);
  return all;
}

std::string per_clock_fault(const ComputeConfig& compute) {
  if (!sold(compute.units) || !sold(compute.clock)) return {};
  for (const auto& [precision, per_clock] : compute.matrix_per_clock) {
    const auto rate = compute.matrix.find(precision);
    if (rate == compute.matrix.end())
      return "every precision of matrix_per_clock must be in 'matrix'";
    if (!sold(rate->second) || !sold(per_clock)) continue;
    const FlopsPerSecond product(unit_clocks(compute) * per_clock.value);
    if (std::abs(product / rate->second.value - 1) <= kSheetRounding) continue;
    return "units x clock x matrix_per_clock must be the rate of " +
           std::string(to_string(precision)) + ": " + std::to_string(compute.units.value) + " x " +
           print(compute.clock.value) + " x " + print_number(per_clock.value) + " = " +
           print(product) + ", not " + print(rate->second.value);
  }
  return {};
}

std::string arrays_fault(const ComputeConfig& compute) {
  if (!compute.arrays) return {};
  const ArraysConfig& arrays = *compute.arrays;
  if (!sold(arrays.per_unit) || !sold(arrays.rows) || !sold(arrays.columns)) return {};
  const double flops = 2.0 * arrays.per_unit.value * arrays.rows.value * arrays.columns.value;
  const auto is_theirs = [&](const auto& per_clock) {
    return std::abs(per_clock.second.value / flops - 1) <= kSheetRounding;
  };
  const auto& rates = compute.matrix_per_clock;
  if (std::any_of(rates.begin(), rates.end(), is_theirs)) return {};
  return "matrix_per_clock must have a precision whose FLOPs are 2 x per_unit x rows x columns: " +
         print_number(flops);
}

std::string organisation_fault(const MemoryConfig& memory) {
  const int given = int{memory.stacks.has_value()} + int{memory.bus_width.has_value()} +
                    int{memory.data_rate.has_value()};
  if (given == 0) return {};
  if (given < 3) return "stacks, bus_width and data_rate are given together or not at all";
  if (!sold(memory.bandwidth) || !sold(memory.stacks) || !sold(memory.bus_width) ||
      !sold(memory.data_rate))
    return {};
  if (std::abs(bandwidth_of_pins(memory) / memory.bandwidth.value - 1) <= kSheetRounding) return {};
  return "stacks x bus_width x data_rate must be the bandwidth: " +
         std::to_string(memory.stacks->value) + " x " + std::to_string(memory.bus_width->value) +
         " bit x " + print(memory.data_rate->value) + " = " + print(bandwidth_of_pins(memory)) +
         ", not " + print(memory.bandwidth.value);
}

}  // namespace orrery
