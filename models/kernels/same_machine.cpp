// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/same_machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/unit_work.h"
#include "sim/config/type.h"
#include "sim/machine/kernel_model.h"
#include "sim/units/hash.h"

namespace orrery {
namespace {

constexpr double kAbsent = -1;

/// Numbers of a table: one for each precision.
constexpr std::size_t kOfTable = std::size(config::EnumNames<Precision>::values);
constexpr std::size_t kTables = 6;

double number(bool value) { return value ? 1 : 0; }
double number(int value) { return value; }
double number(double value) { return value; }
template <Dimension D>
double number(Quantity<D> value) {
  return value.base();
}
template <class T>
double number(const Fact<T>& fact) {
  return number(fact.value);
}
template <class T>
double number(const std::optional<Fact<T>>& fact) {
  return fact ? number(*fact) : kAbsent;
}

/// One number for the sizes of all groups; different for different ones, but for one chance in
/// 2^52.
double number_of(const std::optional<UnitGroupsConfig>& groups) {
  if (!groups) return kAbsent;
  constexpr int kMantissa = 52;
  std::uint64_t hash = 0;
  for (const int size : groups->sizes) {
    hash ^= static_cast<std::uint64_t>(size);
    hash = next_random(hash);
  }
  return static_cast<double>(hash >> (64 - kMantissa));
}

/// Writes numbers one after the other; absent groups leave their places alone, so that every number
/// has a place of its own.
class Writer {
 public:
  explicit Writer(DeviceNumbers& numbers) : numbers_(numbers) { numbers_.fill(kAbsent); }

  template <class T>
  void table(const std::map<Precision, Fact<T>>& values) {
    for (const auto& [precision, value] : values)
      numbers_[count_ + static_cast<std::size_t>(precision)] = number(value);
    count_ += kOfTable;
  }
  template <class... T>
  void all(const T&... values) {
    ((numbers_[count_++] = number(values)), ...);
  }
  void skip(std::size_t places) { count_ += places; }

 private:
  DeviceNumbers& numbers_;
  std::size_t count_ = 0;
};

void write(Writer& to, const CoreConfig& core) {
  to.all(number_of(core.groups), core.async_copy, core.registers, core.accumulators,
         core.shared_memory, core.shared_bandwidth, core.max_blocks, core.max_warps,
         core.max_cluster);
  if (core.matrix_tile) {
    const auto issue = core.matrix_tile->issue;
    to.all(core.matrix_tile->rows, core.matrix_tile->columns,
           issue ? static_cast<double>(*issue) : kAbsent);
  } else {
    to.skip(3);
  }
}

/// The device before what-ifs, against which power caps and losses of the memory are taken.
void write_as_sold(Writer& to, const AcceleratorConfig& a) {
  if (a.sold) {
    to.table(a.sold->compute.matrix);
    to.all(a.sold->compute.units, a.sold->compute.clock, a.sold->compute.boost_clock,
           a.sold->memory.bandwidth);
  } else {
    to.skip(kOfTable + 4);
  }
  const auto& memory = a.memory.sold;
  memory ? to.all(memory->bandwidth, memory->stacks, memory->bus_width, memory->data_rate)
         : to.skip(4);
}

}  // namespace

bool differs(double a, double b) { return std::abs(a - b) > 1e-3 * std::max(a, b); }

bool another_machine(const CalibratedRates& rates, const AcceleratorConfig& accelerator) {
  const auto other = [](double recorded, double value) {
    return recorded > 0 && differs(recorded, value);
  };
  const double cache = accelerator.cache ? accelerator.cache->capacity.value.base() : 0;
  return differs(rates.memory.base(), accelerator.memory.bandwidth.value.base()) ||
         other(rates.units, accelerator.compute.units.value) ||
         other(rates.clock.base(), accelerator.compute.clock.value.base()) ||
         other(rates.cache.base(), cache) ||
         other(rates.power.base(), accelerator.power.cap().base());
}

bool inside(const ShapeRange& range, const Kernel& kernel, bool narrow) {
  const auto within = [](const std::vector<std::int64_t>& ends, std::int64_t value) {
    return ends[0] <= value && value <= ends[1];
  };
  const WeightFormat& weights = kernel.weights;
  const bool stored =
      narrow ? weights.bits > 0 && !weights.sparse && !weights.marlin : weights == WeightFormat{};
  // Tiles of scans say whose kernel it is, and tables have both kinds.
  const bool asked =
      kernel.kind != KernelClass::kScan && kernel.tile != std::array<std::int64_t, 2>{};
  return stored && !asked && kernel.cluster == 0 && !kernel.attention.backward &&
         kernel.attention.lengths.empty() && within(range.batch, kernel.batch) &&
         within(range.m, kernel.m) && within(range.n, kernel.n) && within(range.k, kernel.k);
}

double units_of_rank(const AcceleratorConfig& accelerator) {
  return static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
}

double cache_bandwidth(const AcceleratorConfig& a) {
  return a.cache ? a.cache->bandwidth.value.base() / a.dies / 1e6 : 0;
}

bool other_structure(const AcceleratorConfig& measured, const AcceleratorConfig& accelerator) {
  const auto async = [](const AcceleratorConfig& a) { return !a.core || a.core->async_copy.value; };
  return cache_bandwidth(measured) != cache_bandwidth(accelerator) ||
         exponentials_over(accelerator, measured) != 1 ||
         far_wait_us(measured) != far_wait_us(accelerator) ||
         cache_copies(measured) != cache_copies(accelerator) ||
         crossing_rate(measured) != crossing_rate(accelerator) ||
         matrix_issue(measured) != matrix_issue(accelerator) ||
         async(measured) != async(accelerator);
}

std::vector<double> shaken(const FamilyOf& of, const KernelFit& fit, std::vector<double> values) {
  if (fit.sibling.empty()) return {};
  const std::vector<ParameterInfo>& infos = of.family->parameters();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const auto found = fit.parameters.find(of.group + "." + infos[i].name);
    if (found != fit.parameters.end() && found->second.provenance == ParameterProvenance::kSibling)
      values[i] = 1.1 * values[i] + 1e-3;
  }
  return values;
}

DeviceNumbers device_numbers(const AcceleratorConfig& a) {
  static_assert(kTables * kOfTable + 79 <= std::tuple_size_v<DeviceNumbers>);
  DeviceNumbers numbers;
  Writer to(numbers);
  to.table(a.compute.matrix);
  to.table(a.compute.matrix_inference);
  to.table(a.kernel.matrix_efficiency);
  to.table(a.compute.matrix_per_clock);
  to.table(a.energy.matrix);
  to.all(a.dies, a.die_to_die, a.compute.units, a.compute.clock, a.compute.boost_clock,
         a.compute.vector, a.compute.special, a.compute.structured_sparsity);
  const auto& arrays = a.compute.arrays;
  arrays ? to.all(arrays->per_unit, arrays->rows, arrays->columns, arrays->load, arrays->fill)
         : to.skip(5);
  to.all(a.memory.capacity, a.memory.bandwidth, a.memory.stacks, a.memory.bus_width,
         a.memory.data_rate, a.memory.refresh, a.memory.exchange);
  to.all(a.kernel.vector_efficiency, a.kernel.memory_efficiency, a.kernel.exponent, a.kernel.launch,
         a.kernel.uncertainty);
  to.all(a.host_link.links, a.host_link.bandwidth, a.power.tdp, a.power.idle, a.power.active,
         a.power.busy, a.power.limit, a.power.floor_clock, a.power.floor_voltage,
         a.sold ? 1.0 : kAbsent);
  write_as_sold(to, a);
  to.all(a.energy.vector, a.energy.memory, a.energy.transport, a.energy.cache);
  a.core ? write(to, *a.core) : to.skip(12);
  a.cache ? to.all(a.cache->capacity, a.cache->partitions, a.cache->bandwidth,
                   a.cache->far_bandwidth, a.cache->far_latency, a.cache->duplicated)
          : to.skip(6);
  a.copy_engines
      ? to.all(a.copy_engines->count, a.copy_engines->directions, a.copy_engines->bandwidth)
      : to.skip(3);
  if (a.launch) to.all(a.launch->host, a.launch->stream, a.launch->graph);
  return numbers;
}

}  // namespace orrery
