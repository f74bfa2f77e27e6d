// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/accelerator_config.h"

#include <algorithm>

namespace orrery {
namespace {

using config::at_least;
using config::between;
using config::Bounds;
using config::Schema;
using namespace literals;

// Wider than any part on sale, narrow enough to catch a wrong prefix or a forgotten one.
const Bounds kCount = between(1, 1e6);
const Bounds kFraction = between(1e-3, 1);
const Bounds kClock = between(Hertz(1e6), Hertz(1e11));
const Bounds kRate = between(FlopsPerSecond(1e6), FlopsPerSecond(1e20));
const Bounds kCapacity = between(1_KB, 10_TB);
const Bounds kBandwidth = between(BytesPerSecond(1e6), BytesPerSecond(1e15));
const Bounds kPower = between(Watts(1e-3), Watts(1e6));
const Bounds kEnergyPerFlop = between(JoulesPerFlop(0), JoulesPerFlop(1e-9));
const Bounds kEnergyPerByte = between(JoulesPerByte(0), JoulesPerByte(1e-6));
const Bounds kLatency = between(Seconds(0), Seconds(1));

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

}  // namespace

const Schema<ComputeConfig>& ComputeConfig::schema() {
  using C = ComputeConfig;
  static const auto schema =
      Schema<C>("compute", "arithmetic of one package, dense rates")
          .optional("unit_kind", &C::unit_kind, "what a unit is: SM, cube core, ...")
          .required("units", &C::units, "units of the package", kCount)
          .required("clock", &C::clock, "clock at which the matrix rates hold [MHz]", kClock)
          .required("matrix", &C::matrix,
                    "dense peak of the matrix units by operand precision [TFLOP/s]", kRate)
          .optional("matrix_inference", &C::matrix_inference,
                    "peak where the vendor rates inference apart [TFLOP/s]", kRate)
          .required("vector", &C::vector, "fp32 peak of the vector lanes [TFLOP/s]", kRate)
          .check(
              "at least one precision is needed", [](const C& c) { return !c.matrix.empty(); },
              "matrix")
          .check("every precision here must be in 'matrix', at a rate that is not above this one",
                 inference_is_no_slower, "matrix_inference");
  return schema;
}

const Schema<MemoryConfig>& MemoryConfig::schema() {
  using C = MemoryConfig;
  static const auto schema =
      Schema<C>("memory", "device memory of one package")
          .optional("kind", &C::kind, "HBM3e, GDDR7, ...")
          .required("capacity", &C::capacity, "what can be allocated [GB, MiB]", kCapacity)
          .required("bandwidth", &C::bandwidth, "peak, reads and writes together [TB/s]",
                    kBandwidth);
  return schema;
}

const Schema<PortConfig>& PortConfig::schema() {
  using C = PortConfig;
  static const auto schema = Schema<C>("port", "links that leave one package")
                                 .required("kind", &C::kind, "NVLink 5, UB, InfiniBand NDR, ...")
                                 .required("links", &C::links, "number of links", kCount)
                                 .required("bandwidth", &C::bandwidth,
                                           "all links together, one way [GB/s, Gb/s]", kBandwidth);
  return schema;
}

const Schema<PowerConfig>& PowerConfig::schema() {
  using C = PowerConfig;
  static const auto schema = Schema<C>("power", "electrical power of one package")
                                 .required("tdp", &C::tdp, "design power [W]", kPower)
                                 .required("idle", &C::idle, "drawn without work [W]", kPower)
                                 .check(
                                     "idle power must be below the design power",
                                     [](const C& c) { return c.idle.value < c.tdp.value; }, "idle");
  return schema;
}

const Schema<EnergyConfig>& EnergyConfig::schema() {
  using C = EnergyConfig;
  static const auto schema =
      Schema<C>("energy", "energy of work, above idle power")
          .required("matrix", &C::matrix, "of a matrix operation by precision [pJ/FLOP]",
                    kEnergyPerFlop)
          .required("vector", &C::vector, "of an fp32 vector operation [pJ/FLOP]", kEnergyPerFlop)
          .required("memory", &C::memory, "from memory to the cores or back [pJ/B, pJ/bit]",
                    kEnergyPerByte)
          .required("scale_up", &C::scale_up,
                    "of a message in the scale-up fabric, the whole way [pJ/B, pJ/bit]",
                    kEnergyPerByte)
          .required("scale_out", &C::scale_out,
                    "of a message in the scale-out network, the whole way [pJ/B, pJ/bit]",
                    kEnergyPerByte);
  return schema;
}

const Schema<KernelConfig>& KernelConfig::schema() {
  using C = KernelConfig;
  static const auto schema =
      Schema<C>("kernel", "priors of the p-norm roofline")
          .required("matrix_efficiency", &C::matrix_efficiency,
                    "share of the matrix peak that large kernels reach, by precision", kFraction)
          .required("vector_efficiency", &C::vector_efficiency,
                    "share of the vector peak that kernels reach", kFraction)
          .required("memory_efficiency", &C::memory_efficiency,
                    "share of the memory bandwidth that kernels reach", kFraction)
          .required("exponent", &C::exponent,
                    "p of (t_compute^p + t_memory^p)^(1/p): 1 no overlap, large perfect overlap",
                    between(1, 64))
          .required("launch", &C::launch, "fixed cost of a kernel [us]", kLatency);
  return schema;
}

const Schema<AcceleratorConfig>& AcceleratorConfig::schema() {
  using C = AcceleratorConfig;
  static const auto schema =
      Schema<C>("accelerator", "an accelerator package; a rank is one of its dies")
          .named("accelerator", &C::id)
          .required("name", &C::name, "what people call it")
          .optional("vendor", &C::vendor, "who makes it")
          .optional("architecture", &C::architecture, "generation and chip")
          .optional("dies", &C::dies, "dies that are ranks of their own", between(1, 64))
          .optional("die_to_die", &C::die_to_die,
                    "between two such dies, one way; 0 where there is one [GB/s]",
                    between(BytesPerSecond(0), BytesPerSecond(1e15)))
          .required("compute", &C::compute, "arithmetic")
          .required("memory", &C::memory, "device memory")
          .required("scale_up", &C::scale_up, "ports to the scale-up fabric")
          .required("scale_out", &C::scale_out, "ports to the network between systems")
          .optional("host_link", &C::host_link, "link to the host processor, for copies")
          .required("power", &C::power, "electrical power")
          .required("energy", &C::energy, "energy of work")
          .required("kernel", &C::kernel, "kernel model")
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
              "kernel");
  return schema;
}

}  // namespace orrery
