// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/system_figures.h"

#include <utility>

namespace orrery {
namespace {

using Value = std::optional<double>;
using Keys = std::vector<std::string>;
using Scales = std::vector<Scale>;

const std::string kBf16 = "accelerator.compute.matrix.bf16";
const std::string kCapacity = "accelerator.memory.capacity";
const std::string kBandwidth = "accelerator.memory.bandwidth";
const std::string kScaleUp = "accelerator.scale_up.bandwidth";
const std::string kScaleOut = "accelerator.scale_out.bandwidth";
const std::string kChips = "accelerators";
const std::string kPower = "all_in_power";
const std::string kBuiltSystems = "installation.systems";

/// The Fact of one key, or the sum of it over all of some numbers: packages, systems.
Figure product(std::string label, Scales scales, std::optional<int> decimals,
               const std::string& key, const Keys& numbers = {}, double ways = 1) {
  return {std::move(label),
          std::move(scales),
          decimals,
          {key},
          [=](const SystemConfig&, const Values& of) {
            Value value = of(key);
            if (value) *value *= ways;
            for (const std::string& number : numbers)
              if (value) *value *= of(number).value();
            return value;
          }};
}

Figure total(std::string label, Scales scales, std::optional<int> decimals, const std::string& key,
             double ways = 1) {
  return product(std::move(label), std::move(scales), decimals, key, {kChips}, ways);
}

/// A figure of NICs, which several packages may share.
Figure shared_nics(Figure figure) {
  figure.value = [all = figure.value](const SystemConfig& s, const Values& of) -> Value {
    const Value value = all(s, of);
    return value ? Value(*value / s.packages_per_nic()) : std::nullopt;
  };
  return figure;
}

/// All-in power over a total.
Figure power_per(std::string label, Scale scale, int decimals, const std::string& key) {
  return {std::move(label),
          {std::move(scale)},
          decimals,
          {kPower, key},
          [key](const SystemConfig&, const Values& of) -> Value {
            const Value power = of(kPower), one = of(key);
            return power && one ? Value(*power / (*one * of(kChips).value())) : std::nullopt;
          }};
}

/// A figure of the machine that was built of systems; most rest on the number of them.
Figure of_machine(Figure figure, bool rests_on_systems = true) {
  figure.label = "machine, " + figure.label;
  figure.of_machine = true;
  if (rests_on_systems) figure.inputs.push_back(kBuiltSystems);
  return figure;
}

/// A figure that is published of the whole machine.
Figure published(std::string label, Scales scales, int decimals, const std::string& key) {
  return of_machine(product(std::move(label), std::move(scales), decimals, "installation." + key),
                    false);
}

/// A figure of systems, summed over those of the machine.
Figure machine_total(std::string label, Scales scales, const std::string& key) {
  return of_machine(product(std::move(label), std::move(scales), {}, key, {kChips, kBuiltSystems}));
}

const std::string kPeak = "installation.fp64_peak.";

Value fp64_of_parts(const SystemConfig& s, const Values& of) {
  const Value processors = of(kPeak + "processors"), unit = of(kPeak + "unit_flops");
  if (!processors || !unit) return std::nullopt;
  const double package = s.accelerator.compute.units.value * of(kPeak + "clock").value() * *unit;
  return s.installation->systems.value * (*processors + s.accelerators.value * package);
}

/// Accelerators at their caps and processors; networks, storage and cooling are not in it.
Value design_power(const SystemConfig& s, const Values& of) {
  return s.installation->systems.value * (s.accelerators.value * s.accelerator.power.cap().base() +
                                          of("installation.processors").value_or(0));
}

Value cost_of_package(const SystemConfig& s, const Values& of) {
  const Value cost = of("installation.cost");
  return cost ? Value(*cost / s.installation->systems.value / s.accelerators.value) : cost;
}

/// Ports that a package does not have are none, and the clock of a machine's FP64 peak is that of
/// its packages unless it has its own.
std::optional<SeenFact> fact_of(const SystemConfig& system, const std::string& key) {
  if (key == kScaleUp && !system.accelerator.scale_up.present()) return std::nullopt;
  if (key == kScaleOut && !system.accelerator.scale_out.present()) return std::nullopt;
  std::optional<SeenFact> fact = fact_at(system, key);
  if (!fact && key == kPeak + "clock" && system.installation && system.installation->fp64_peak)
    return fact_at(system, std::string("accelerator.compute.clock"));
  return fact;
}

}  // namespace

std::vector<SeenFact> inputs_of(const Figure& figure, const SystemConfig& system) {
  std::vector<SeenFact> inputs;
  if (figure.of_machine && !system.installation) return inputs;
  for (const std::string& key : figure.inputs)
    if (std::optional<SeenFact> fact = fact_of(system, key)) inputs.push_back(std::move(*fact));
  return inputs;
}

std::optional<double> value_of(const Figure& figure, const SystemConfig& system, bool published) {
  if (figure.of_machine && !system.installation) return std::nullopt;
  return figure.value(system, [&](const std::string& key) -> Value {
    const std::optional<SeenFact> fact = fact_of(system, key);
    if (!fact) return std::nullopt;
    return published ? fact->published : fact->simulated;
  });
}

const std::vector<Figure>& all_figures() {
  const Scales flops = {{1e12, "TFLOPS"}, {1e15, "PFLOPS"}, {1e18, "EFLOPS"}};
  const Scales bytes = {{1e9, "GB"}, {1e12, "TB"}, {1e15, "PB"}};
  const Scales rates = {{1e9, "GB/s"}, {1e12, "TB/s"}, {1e15, "PB/s"}};
  const Scales gigabits = {{1e9 / 8, "Gb/s"}};
  const Scales watts = {{1e3, "kW"}, {1e6, "MW"}}, petaflops = {{1e15, "PFLOPS"}};
  static const std::vector<Figure> figures = {
      total("BF16 dense", flops, {}, kBf16),
      total("FP8 dense", flops, {}, "accelerator.compute.matrix.fp8"),
      total("NVFP4 training", flops, {}, "accelerator.compute.matrix.nvfp4"),
      total("NVFP4 inference", flops, {}, "accelerator.compute.matrix_inference.nvfp4"),
      total("INT8 dense", {{1e12, "TOPS"}, {1e15, "POPS"}, {1e18, "EOPS"}}, {},
            "accelerator.compute.matrix.int8"),
      total("HBM capacity", bytes, {}, kCapacity),
      total("HBM bandwidth", rates, {}, kBandwidth),
      product("host memory capacity", bytes, 0, "host.memory"),  // vendors publish it to the TB
      total("scale-up bandwidth, one way", gigabits, 0, kScaleUp),
      total("scale-up bandwidth, both ways", rates, {}, kScaleUp, 2),
      product("scale-up domain", {{1, ""}}, 0, kChips),
      shared_nics(total("scale-out bandwidth, one way", gigabits, 0, kScaleOut)),
      product("all-in power", {{1, "W"}}, 0, kPower),
      power_per("all-in power per BF16 dense", {1e-12, "W/TFLOP"}, 2, kBf16),
      power_per("all-in power per HBM bandwidth", {1e-12, "W per TB/s"}, 1, kBandwidth),
      power_per("all-in power per HBM capacity", {1e-9, "kW/TB"}, 1, kCapacity),
      product("BF16 dense, per chip", {{1e12, "TFLOPS"}}, 0, kBf16),
      product("HBM capacity, per chip", {{1e9, "GB"}}, 0, kCapacity),
      product("HBM bandwidth, per chip", {{1e12, "TB/s"}}, 1, kBandwidth),
      product("scale-up bandwidth, one way, per chip", gigabits, 0, kScaleUp),
      shared_nics(product("scale-out bandwidth, one way, per chip", gigabits, 0, kScaleOut)),
      published("systems", {{1, ""}}, 0, "systems"),
      of_machine(product("chips", {{1, ""}}, 0, kChips, {kBuiltSystems})),
      machine_total("BF16 dense", flops, kBf16),
      machine_total("HBM capacity", bytes, kCapacity),
      machine_total("HBM bandwidth", rates, kBandwidth),
      of_machine({"FP64 peak of the parts",
                  petaflops,
                  1,
                  {kPeak + "processors", kPeak + "unit_flops", kPeak + "clock"},
                  fp64_of_parts}),
      published("FP64 peak as listed", petaflops, 1, "fp64_peak.published"),
      of_machine({"design power of the parts",
                  watts,
                  1,
                  {"accelerator.power.tdp", "installation.processors"},
                  design_power}),
      published("power as published", watts, 1, "power"),
      published("cost", {{1e6, "M USD"}}, 0, "cost"),
      of_machine({"cost per chip", {{1, "USD"}}, 0, {"installation.cost"}, cost_of_package})};
  return figures;
}

}  // namespace orrery
