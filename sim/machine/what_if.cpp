// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/what_if.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "sim/config/proportional.h"
#include "sim/machine/rounding.h"
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

/// Units times clock of the part as sold, from a rate and its share of one unit and clock.
std::optional<double> rated_unit_clocks(const ComputeConfig& compute) {
  for (const auto& [precision, per_clock] : compute.matrix_per_clock) {
    const auto rate = compute.matrix.find(precision);
    if (rate != compute.matrix.end() && sold(rate->second) && sold(per_clock))
      return rate->second.value.base() / per_clock.value;
  }
  return std::nullopt;
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

/// Lets a figure of the data sheet follow, and tells so under its name.
class Follower {
 public:
  explicit Follower(std::vector<std::string>& told) : told_(told) {}

  template <class T>
  void set(const std::string& name, Fact<T>& fact, T value) {
    if (!sold(fact)) return;
    constexpr double kSame = 1e-3;  // the rounding of what it was derived from
    if (std::abs(value / fact.value - 1) < kSame) return;
    told_.push_back(name + ": " + print(fact.value) + " became " + print(rounded(value)));
    fact.value = value;
    fact.nameplate.reset();
  }

  template <class T>
  void scale(const std::string& name, Fact<T>& fact, double factor) {
    set(name, fact, fact.value * factor);
  }

  /// What did not follow, and why.
  void tell(const std::vector<std::string>& sentences) {
    told_.insert(told_.end(), sentences.begin(), sentences.end());
  }

 private:
  std::vector<std::string>& told_;
};

void follow_matrix(ComputeConfig& compute, double factor, Follower& follower) {
  for (auto& [precision, rate] : compute.matrix) {
    const auto per_clock = compute.matrix_per_clock.find(precision);
    const bool changed = per_clock != compute.matrix_per_clock.end() && !sold(per_clock->second);
    const double before = rate.value.base();
    const std::string name = to_string(precision);
    if (changed) {
      follower.set("compute.matrix." + name, rate,
                   FlopsPerSecond(unit_clocks(compute) * per_clock->second.value));
    } else {
      follower.scale("compute.matrix." + name, rate, factor);
    }
    const auto inference = compute.matrix_inference.find(precision);
    if (inference != compute.matrix_inference.end()) {
      follower.scale("compute.matrix_inference." + name, inference->second,
                     rate.value.base() / before);
    }
  }
}

/// What the clock drives beside the arithmetic.
void follow_clock(AcceleratorConfig& device, double factor, Follower& follower) {
  if (device.compute.boost_clock)
    follower.scale("compute.boost_clock", *device.compute.boost_clock, factor);
  if (device.core) {
    follower.scale("core.shared_bandwidth", device.core->shared_bandwidth, factor);
  }
  if (device.cache) follower.scale("cache.bandwidth", device.cache->bandwidth, factor);
}

/// "a and b", "a, b and c"; empty for none.
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " and ";
    text += names[i];
  }
  return text;
}

template <class T>
void add_sold(std::vector<std::string>& names, const char* name, const std::optional<T>& fact) {
  if (fact && sold(*fact)) names.emplace_back(name);
}

/// Rates of the part as sold that units and clock should have changed.
std::vector<std::string> rates_as_sold(const AcceleratorConfig& device) {
  const ComputeConfig& compute = device.compute;
  std::vector<std::string> names;
  for (const auto& [precision, rate] : compute.matrix)
    if (sold(rate)) names.push_back(std::string("compute.matrix.") + to_string(precision));
  for (const auto& [precision, rate] : compute.matrix_inference)
    if (sold(rate))
      names.push_back(std::string("compute.matrix_inference.") + to_string(precision));
  if (sold(compute.vector)) names.emplace_back("compute.vector");
  add_sold(names, "compute.special", compute.special);
  add_sold(names, "memory.exchange", device.memory.exchange);
  return names;
}

/// What should follow units and clock and cannot, because too much was changed at once to tell what
/// the part as sold had.
std::vector<std::string> left_behind(const AcceleratorConfig& device, bool rated) {
  const ComputeConfig& compute = device.compute;
  const bool units = !sold(compute.units), clock = !sold(compute.clock);
  const std::string changed = units && clock ? "compute.units and compute.clock"
                              : units        ? "compute.units"
                                             : "compute.clock";
  std::vector<std::string> told;
  const std::vector<std::string> rates = rates_as_sold(device);
  if (!rated && !rates.empty()) {
    told.push_back(listed(rates) + " did not follow " + changed +
                   ": no rate is left that tells units x clock of the part as sold; write these "
                   "too, or compute.matrix_per_clock in place of rates");
  }
  if (!clock || (rated && !units)) return told;
  std::vector<std::string> clocked;
  add_sold(clocked, "compute.boost_clock", compute.boost_clock);
  if (device.core && sold(device.core->shared_bandwidth))
    clocked.emplace_back("core.shared_bandwidth");
  if (device.cache && sold(device.cache->bandwidth)) clocked.emplace_back("cache.bandwidth");
  if (!clocked.empty()) {
    told.push_back(
        listed(clocked) + " did not follow compute.clock: " +
        (units ? "compute.units was changed as well, which hides" : "no rate is left that tells") +
        " the clock of the part as sold; write these too");
  }
  return told;
}

void follow_compute(AcceleratorConfig& device, Follower& follower) {
  ComputeConfig& compute = device.compute;
  const std::optional<double> rated = rated_unit_clocks(compute);
  const bool changed = !sold(compute.units) || !sold(compute.clock);
  if (changed) follower.tell(left_behind(device, rated.has_value()));
  const double factor = changed && rated ? unit_clocks(compute) / *rated : 1;
  follow_matrix(compute, factor, follower);
  follower.scale("compute.vector", compute.vector, factor);
  if (compute.special) follower.scale("compute.special", *compute.special, factor);
  if (device.memory.exchange) follower.scale("memory.exchange", *device.memory.exchange, factor);
  if (rated && sold(compute.units) && !sold(compute.clock)) follow_clock(device, factor, follower);
}

/// The device before anything was changed that power depends on, or null: where nothing was, or
/// units and clock both were, which hides what they had been.
std::shared_ptr<AcceleratorConfig> sold_device(const AcceleratorConfig& device) {
  const ComputeConfig& compute = device.compute;
  const bool per_clock =
      std::any_of(compute.matrix_per_clock.begin(), compute.matrix_per_clock.end(),
                  [](const auto& entry) { return !sold(entry.second); });
  const std::optional<double> rated = rated_unit_clocks(compute);
  const bool units = !sold(compute.units) && rated, clock = !sold(compute.clock) && rated;
  if (units == clock && !per_clock && !device.power.limit) return nullptr;
  auto before = std::make_shared<AcceleratorConfig>(device);
  before->power.limit.reset();
  for (auto& [precision, rate] : before->compute.matrix) {
    const auto per_clock_as_sold = compute.matrix_per_clock.find(precision);
    if (rated && !sold(rate) && per_clock_as_sold != compute.matrix_per_clock.end())
      rate.value = FlopsPerSecond(*rated * per_clock_as_sold->second.value);
  }
  if (clock && !units) before->compute.clock.value = Hertz(*rated / compute.units.value);
  return before;
}

BytesPerSecond bandwidth_of_pins(const MemoryConfig& memory) {
  return memory.data_rate->value *
         (static_cast<double>(memory.stacks->value) * memory.bus_width->value);
}

void follow_memory(MemoryConfig& memory, Follower& follower) {
  if (!memory.stacks || !memory.bus_width || !memory.data_rate) return;
  const double ratio = bandwidth_of_pins(memory) / memory.bandwidth.value;
  if (!sold(memory.stacks) && sold(memory.capacity) &&
      (!sold(memory.bandwidth) || !sold(memory.bus_width) || !sold(memory.data_rate))) {
    follower.tell(
        {"memory.capacity did not follow memory.stacks: the bandwidth, or what pins it "
         "has, was changed as well, which hides the stacks of the part as sold; write "
         "it too"});
  }
  if (!sold(memory.bandwidth)) {
    if (std::abs(ratio - 1) <= kSheetRounding)
      return;  // else the pins are those of another bandwidth
    MemoryConfig before = memory;
    before.bandwidth.value = bandwidth_of_pins(memory);
    memory.sold = std::make_shared<MemoryConfig>(std::move(before));
    memory.stacks.reset();
    memory.bus_width.reset();
    memory.data_rate.reset();
    return;
  }
  const bool other_pins = !sold(memory.bus_width) || !sold(memory.data_rate);
  if (sold(memory.stacks) && !other_pins) return;
  if (!other_pins) {
    const double before = std::round(memory.stacks->value / ratio);
    follower.scale("memory.capacity", memory.capacity, memory.stacks->value / before);
  }
  follower.set("memory.bandwidth", memory.bandwidth, bandwidth_of_pins(memory));
}

}  // namespace

void follow_changes(AcceleratorConfig& device) {
  Follower follower(device.followed);
  const std::shared_ptr<AcceleratorConfig> before = sold_device(device);
  device.sold = before;
  follow_compute(device, follower);
  follow_memory(device.memory, follower);
  if (before) before->memory.sold = device.memory.sold;
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
