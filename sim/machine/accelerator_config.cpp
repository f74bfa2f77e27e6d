// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/accelerator_config.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/machine/common_bounds.h"
#include "sim/machine/partition.h"
#include "sim/machine/what_if.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using config::between;
using config::Bounds;
using config::Schema;
using namespace literals;

// Wider than any part on sale, narrow enough to catch a wrong prefix or a forgotten one.
const Bounds kClock = between(Hertz(1e6), Hertz(1e11));
const Bounds kRate = between(FlopsPerSecond(1e6), FlopsPerSecond(1e20));
const Bounds kCapacity = between(1_KB, 10_TB);
const Bounds kBandwidth = between(BytesPerSecond(1e6), BytesPerSecond(1e17));
const Bounds kPower = between(Watts(1e-3), Watts(1e6));
const Bounds kEnergyPerFlop =
    between(JoulesPerFlop(0), JoulesPerFlop(1e-8));  // pixel shaders took 2 nJ
const Bounds kEnergyPerByte = between(JoulesPerByte(0), JoulesPerByte(1e-6));

// Whether `table` serves every precision of `rates`; fp8_block runs as fp8 where it has no entry.
template <class A, class B>
bool covers(const std::map<Precision, Fact<A>>& table, const std::map<Precision, Fact<B>>& rates) {
  return std::all_of(rates.begin(), rates.end(), [&](const auto& rate) {
    return table.contains(rate.first) ||
           (rate.first == Precision::kFp8Block && table.contains(Precision::kFp8));
  });
}

bool inference_is_no_slower(const ComputeConfig& compute) {
  return std::all_of(
      compute.matrix_inference.begin(), compute.matrix_inference.end(), [&](const auto& rate) {
        const auto training = compute.matrix.find(rate.first);
        return training != compute.matrix.end() && rate.second.value >= training->second.value;
      });
}

bool boost_is_no_slower(const AcceleratorConfig& device) {
  const ComputeConfig& compute = device.compute;
  return !compute.boost_clock || compute.boost_clock->value >= compute.clock.value;
}

void derive(AcceleratorConfig& device) {
  keep_without_limit(device);
  take_part(device);
}

bool multiply_adds_are_a_part(const EnergyConfig& energy) {
  return std::all_of(
      energy.multiply_add.begin(), energy.multiply_add.end(), [&](const auto& entry) {
        const auto whole = energy.matrix.find(entry.first);
        return whole != energy.matrix.end() && entry.second.value <= whole->second.value;
      });
}

bool nearer_is_cheaper(const EnergyConfig& energy) {
  return energy.cache.value <= energy.memory.value &&
         energy.shared.value <=
             (energy.cache.value.base() > 0 ? energy.cache.value : energy.memory.value);
}

/// Groups of a what-if of the units are those of the device as sold.
std::string groups_fault(const AcceleratorConfig& a) {
  if (!a.core || !a.core->groups || a.compute.units.source.empty()) return {};
  const std::vector<int>& sizes = a.core->groups->sizes;
  const int sum = std::accumulate(sizes.begin(), sizes.end(), 0);
  if (sum == a.compute.units.value) return {};
  return "the groups must have all units: " + std::to_string(sum) + " of " +
         std::to_string(a.compute.units.value);
}

std::string partition_fault(const AcceleratorConfig& a) {
  if (!a.partition) return {};
  if (a.dies != 1) return "a device of several dies has no parts: each die is a rank already";
  if (a.partition->units.value <= a.compute.units.value) return {};
  return "a part has no more units than the device: " + std::to_string(a.partition->units.value) +
         " of " + std::to_string(a.compute.units.value);
}

std::string limit_fault(const PowerConfig& power) {
  if (!power.limit) return {};
  const Watts limit = power.limit->value, idle = power.floor(), tdp = power.tdp.value;
  if (limit > idle && limit <= tdp) return {};
  return "the limit must lie between idle and design power: above " + print(idle) +
         " and at most " + print(tdp);
}

}  // namespace

AcceleratorConfig::AcceleratorConfig() = default;
AcceleratorConfig::AcceleratorConfig(const AcceleratorConfig&) = default;
AcceleratorConfig::AcceleratorConfig(AcceleratorConfig&&) noexcept = default;
AcceleratorConfig& AcceleratorConfig::operator=(const AcceleratorConfig&) = default;
AcceleratorConfig& AcceleratorConfig::operator=(AcceleratorConfig&&) noexcept = default;
AcceleratorConfig::~AcceleratorConfig() = default;

const Schema<ComputeConfig>& ComputeConfig::schema() {
  using C = ComputeConfig;
  static const auto schema =
      Schema<C>("compute", "arithmetic of one package, dense rates")
          .required("units", &C::units, "units of the package", between(1, 1e7))
          .required("clock", &C::clock, "clock at which the matrix rates hold [MHz]", kClock)
          .optional("boost_clock", &C::boost_clock,
                    "clock of kernels too short or light to meet the power cap; absent: clock",
                    kClock)
          .required("matrix", &C::matrix,
                    "dense peak of the matrix units by operand precision [TFLOP/s]", kRate)
          .optional("matrix_inference", &C::matrix_inference,
                    "peak where the vendor rates inference apart [TFLOP/s]", kRate)
          .optional("matrix_per_clock", &C::matrix_per_clock,
                    "FLOPs of one unit in one clock by precision; units x clock x this is the "
                    "matrix rate",
                    between(1e-3, 1e9))
          .required("vector", &C::vector,
                    "fp32 peak of the vector lanes at the boost clock [TFLOP/s]", kRate)
          .optional("special", &C::special,
                    "results of exp, log, sin, ... at the boost clock; absent: vector instructions "
                    "[TFLOP/s]",
                    kRate)
          .optional("structured_sparsity", &C::structured_sparsity,
                    "speed-up of 2:4 sparse operands; 1: none", between(1, 4))
          .optional("full_accumulation", &C::full_accumulation,
                    "rate of fp8 products that add partial sums up in fp32 registers over that of "
                    "fast accumulation; 1: matrix units add up in fp32 anyway",
                    between(0.1, 1))
          .optional("arrays", &C::arrays,
                    "systolic arrays; absent: products fill the matrix units, but for "
                    "kernel.matrix_efficiency")
          .check(arrays_fault, "arrays")
          .check(
              "at least one precision is needed", [](const C& c) { return !c.matrix.empty(); },
              "matrix")
          .check(per_clock_fault, "matrix_per_clock")
          .check("every precision here must be in 'matrix', at a rate that is not above this one",
                 inference_is_no_slower, "matrix_inference");
  return schema;
}

const Schema<MemoryConfig>& MemoryConfig::schema() {
  using C = MemoryConfig;
  static const auto schema =
      Schema<C>("memory", "device memory of one package")
          .optional("kind", &C::kind, "technology, such as HBM3e or GDDR7")
          .required("capacity", &C::capacity,
                    "allocatable memory [MiB, GiB]. NVIDIA devices: the total that CUDA reports; "
                    "nvidia-smi prints a larger one",
                    kCapacity)
          .required("bandwidth", &C::bandwidth, "peak, reads and writes together [TB/s]",
                    kBandwidth)
          .optional("stacks", &C::stacks, "HBM stacks, or DRAM packages", kCountLimits)
          .optional("bus_width", &C::bus_width, "data pins (bits) of one of them", kCountLimits)
          .optional("data_rate", &C::data_rate, "rate of one pin [Gb/s]",
                    between(BytesPerSecond(1e6), BytesPerSecond(1e11)))
          .optional("exchange", &C::exchange,
                    "rate at which units send each other what lies in their parts of the memory, "
                    "all together; absent: every unit reaches all of it [TB/s]",
                    kBandwidth)
          .optional("flash", &C::flash,
                    "memory of a microcontroller that weights of inference stay in, and are read "
                    "from in place")
          .optional("refresh", &C::refresh, "share of the time of all-bank refresh; 0: none",
                    between(0, 0.5))
          .check(organisation_fault, "bandwidth");
  return schema;
}

const Schema<PortConfig>& PortConfig::schema() {
  using C = PortConfig;
  static const auto schema =
      Schema<C>("port", "links that leave one package")
          .required("kind", &C::kind, "technology, such as NVLink 5, UB or InfiniBand NDR")
          .required("links", &C::links, "number of links", kCountLimits)
          .required("bandwidth", &C::bandwidth, "all links together, one way [GB/s, Gb/s]",
                    kBandwidth);
  return schema;
}

const char* to_string(PowerState state) {
  for (const auto& [value, name] : config::EnumNames<PowerState>::values)
    if (value == state) return name;
  return "?";
}

const Schema<PowerConfig>& PowerConfig::schema() {
  using C = PowerConfig;
  static const auto schema =
      Schema<C>("power", "electrical power of one package")
          .required("tdp", &C::tdp, "design power [W]", kPower)
          .required("idle", &C::idle, "power drawn without a job [W]", kPower)
          .optional("active", &C::active,
                    "power drawn without work while a job holds the device (contexts open, clocks "
                    "and memory up); absent: idle [W]",
                    kPower)
          .optional("busy", &C::busy,
                    "power of one unit that runs or waits for the memory, at the boost clock and "
                    "beside the energy of its work [W]",
                    between(Watts(0), Watts(1e4)))
          .optional("uncertainty", &C::uncertainty,
                    "standard deviation of log(drawn / predicted power) at given times",
                    between(0, 2))
          .optional("limit", &C::limit, "a lower cap, as of nvidia-smi -pl; absent: tdp [W]",
                    kPower)
          .optional("floor_clock", &C::floor_clock,
                    "share of the boost clock below which the voltage is at "
                    "its floor",
                    between(0, 0.99))
          .optional("floor_voltage", &C::floor_voltage,
                    "lowest voltage over that at the boost clock", kFractionLimits)
          .optional("spread", &C::spread,
                    "standard deviation, over the mean, of what dies of a kind draw above idling "
                    "for the same work; steps wait for the one that the cap slows down most",
                    between(0, 0.3))
          .optional("response", &C::response, "window over which power management averages [ms]",
                    between(Seconds(1e-3), Seconds(10)))
          .optional("state", &C::state,
                    "burst (one kernel after a few replays of itself, as tables are measured) or "
                    "steady (repeated without end: no window of 'response' averages above the "
                    "cap); auto: burst for operators, steady for steps; boost: burst")
          .check(limit_fault, "limit")
          .check(
              "idle power must be below the design power",
              [](const C& c) { return c.idle.value < c.tdp.value; }, "idle")
          .check(
              "power of a device that a job holds must be between idle and design power",
              [](const C& c) { return c.floor() >= c.idle.value && c.floor() < c.tdp.value; },
              "active");
  return schema;
}

const Schema<EnergyConfig>& EnergyConfig::schema() {
  using C = EnergyConfig;
  static const auto schema =
      Schema<C>("energy", "energy of work, above idle power")
          .required("matrix", &C::matrix, "energy of a matrix operation by precision [pJ/FLOP]",
                    kEnergyPerFlop)
          .optional("multiply_add", &C::multiply_add,
                    "energy of the matrix unit's multiply-adds alone, a part of 'matrix' [pJ/FLOP]",
                    kEnergyPerFlop)
          .required(
              "vector", &C::vector,
              "energy of an fp32 multiply-add on the vector lanes, over its two FLOP [pJ/FLOP]",
              kEnergyPerFlop)
          .required("memory", &C::memory, "energy from memory to the cores or back [pJ/B, pJ/bit]",
                    kEnergyPerByte)
          .optional("transport", &C::transport,
                    "energy of a byte of the memory beyond 'memory', as boards draw it: networks "
                    "on chip, controllers, conversion [pJ/B]",
                    kEnergyPerByte)
          .optional("cache", &C::cache,
                    "energy from the last cache to the cores; 0: there is none [pJ/B]",
                    kEnergyPerByte)
          .optional("shared", &C::shared, "energy from the shared memory of a unit [pJ/B]",
                    kEnergyPerByte)
          .optional("scale_up", &C::scale_up,
                    "energy of a message in the scale-up fabric, the whole way [pJ/B, pJ/bit]",
                    kEnergyPerByte)
          .optional("scale_out", &C::scale_out,
                    "energy of a message in the scale-out network, the whole way [pJ/B, pJ/bit]",
                    kEnergyPerByte)
          .check("every precision here must be in 'matrix', at no more energy",
                 multiply_adds_are_a_part, "multiply_add")
          .check("a nearer level must not cost more: shared, cache, memory", nearer_is_cheaper,
                 "memory");
  return schema;
}

const Schema<KernelConfig>& KernelConfig::schema() {
  using C = KernelConfig;
  static const auto schema =
      Schema<C>("kernel", "priors of the p-norm roofline")
          .required("matrix_efficiency", &C::matrix_efficiency,
                    "share of the matrix peak that large kernels reach, by precision",
                    kFractionLimits)
          .required("vector_efficiency", &C::vector_efficiency,
                    "share of the vector peak that kernels reach", kFractionLimits)
          .required("memory_efficiency", &C::memory_efficiency,
                    "share of the memory bandwidth that kernels reach", kFractionLimits)
          .required("exponent", &C::exponent,
                    "p of (t_compute^p + t_memory^p)^(1/p): 1 no overlap, large perfect overlap",
                    between(1, 64))
          .required("launch", &C::launch, "fixed cost of a kernel [us]", kLatencyLimits)
          .optional("uncertainty", &C::uncertainty,
                    "standard deviation of log(real / predicted) of kernels on these priors",
                    between(0, 3));
  return schema;
}

const Schema<AcceleratorConfig>& AcceleratorConfig::schema() {
  using C = AcceleratorConfig;
  static const auto schema =
      Schema<C>("accelerator", "an accelerator package; a rank is one of its dies")
          .named("accelerator", &C::id)
          .required("name", &C::name, "what people call it")
          .optional("architecture", &C::architecture, "generation and chip")
          .optional("year", &C::year, "first year in which it is to be had, or is announced for",
                    between(1970, 2100))
          .optional("dies", &C::dies, "dies that are ranks of their own", between(1, 64))
          .optional("die_to_die", &C::die_to_die,
                    "bandwidth between two such dies, one way; 0 where there is one [GB/s]",
                    between(BytesPerSecond(0), BytesPerSecond(1e15)))
          .required("compute", &C::compute, "arithmetic of the package: units, clocks, peak rates")
          .required("memory", &C::memory, "device memory")
          .optional("core", &C::core, "one unit; absent: only rates are known")
          .optional("cache", &C::cache, "the last cache; absent: units read the memory directly")
          .optional("launch", &C::launch, "the way of a kernel to the device")
          .optional("scale_up", &C::scale_up, "ports to the scale-up fabric; absent: none")
          .optional("scale_out", &C::scale_out,
                    "ports to the network between systems; absent: none")
          .optional("host_link", &C::host_link, "link to the host processor, for copies")
          .optional("copy_engines", &C::copy_engines,
                    "engines that copy; absent: they keep up with links and memory")
          .required("power", &C::power, "electrical power")
          .required("energy", &C::energy, "energy of work")
          .required("kernel", &C::kernel, "priors of the kernel model")
          .optional("approximations", &C::approximations,
                    "what this description leaves out or takes for something else")
          .optional("known_errors", &C::known_errors,
                    "published results that are missed by more than the interval; runs print them")
          .optional("calibration", &C::calibration,
                    "calibration of the library that tells about this device; empty: none")
          .optional("partition", &C::partition, "the part of the device that this is, as of MIG")
          .check(
              "the units must divide evenly over the dies",
              [](const C& c) { return c.compute.units.value % c.dies == 0; }, "dies")
          .check(
              "the scale-up links must divide evenly over the dies",
              [](const C& c) { return c.scale_up.links.value % c.dies == 0; }, "dies")
          .check(
              "several dies need a bandwidth between them, one die has none",
              [](const C& c) { return (c.dies > 1) == (c.die_to_die.value.base() > 0); },
              "die_to_die")
          .check(
              "energy.matrix must have every precision of compute.matrix",
              [](const C& c) { return covers(c.energy.matrix, c.compute.matrix); }, "energy")
          .check(
              "kernel.matrix_efficiency must have every precision of compute.matrix",
              [](const C& c) { return covers(c.kernel.matrix_efficiency, c.compute.matrix); },
              "kernel")
          .check(
              "ports need the energy of a message: energy.scale_up and energy.scale_out",
              [](const C& c) {
                return (!c.scale_up.present() || c.energy.scale_up.value.base() > 0) &&
                       (!c.scale_out.present() || c.energy.scale_out.value.base() > 0);
              },
              "energy")
          .check("boost_clock must not be below clock", boost_is_no_slower, "compute.boost_clock")
          .check(groups_fault, "core")
          .check(partition_fault, "partition")
          .follow(follow_changes)
          .derive(derive);
  return schema;
}

}  // namespace orrery
