// SPDX-License-Identifier: Apache-2.0
// What machines come to that were built of copies of a system, from their parts and as published.
#include <algorithm>
#include <utility>

#include "sim/app/questions/describe/figure_inputs.h"

namespace orrery {
namespace {

/// A figure of systems that a machine was built of; `inputs` are those besides the number of them.
Figure of_machine(std::string label, std::vector<Scale> scales, std::optional<int> decimals,
                  std::function<std::optional<double>(const SystemConfig&, View)> value,
                  std::function<std::vector<Input>(const SystemConfig&)> inputs) {
  return {std::move(label), std::move(scales), decimals,
          [value = std::move(value)](const SystemConfig& s, View view) -> std::optional<double> {
            return s.installation ? value(s, view) : std::nullopt;
          },
          [inputs = std::move(inputs)](const SystemConfig& s) {
            if (!s.installation) return std::vector<Input>();
            std::vector<Input> all = inputs(s);
            all.push_back(input_of("installation.systems", s.installation->systems));
            return all;
          }};
}

/// A figure that is published of the whole machine; `find` returns null where it is not.
template <class Find>
Figure published(std::string label, std::vector<Scale> scales, std::optional<int> decimals,
                 const std::string& key, Find find) {
  return {std::move(label), std::move(scales), decimals,
          [find](const SystemConfig& s, View view) -> std::optional<double> {
            const auto* fact = s.installation ? find(*s.installation) : nullptr;
            return fact ? std::optional<double>(seen(*fact, view)) : std::nullopt;
          },
          [find, key](const SystemConfig& s) -> std::vector<Input> {
            const auto* fact = s.installation ? find(*s.installation) : nullptr;
            if (!fact) return {};
            return {input_of("installation." + key, *fact)};
          }};
}

/// A figure of systems, summed over those of the machine.
Figure machine_total(const std::string& label, const std::string& name) {
  const std::vector<Figure>& systems = system_figures();
  const auto found = std::find_if(systems.begin(), systems.end(),
                                  [&](const Figure& figure) { return figure.label == label; });
  const Figure& one = *found;
  return of_machine(
      "machine, " + name, one.scales, one.decimals,
      [of_one = one.value](const SystemConfig& s, View view) -> std::optional<double> {
        const std::optional<double> value = of_one(s, view);
        return value ? std::optional<double>(*value * s.installation->systems.value) : value;
      },
      one.inputs);
}

std::optional<double> fp64_of_parts(const SystemConfig& s, View view) {
  if (!s.installation->fp64_peak) return std::nullopt;
  const ListedPeakConfig& peak = *s.installation->fp64_peak;
  const ComputeConfig& compute = s.accelerator.compute;
  const double clock = peak.clock ? seen(*peak.clock, view) : seen(compute.clock, view);
  const double package = compute.units.value * clock * seen(peak.unit_flops, view);
  return s.installation->systems.value *
         (seen(peak.processors, view) + s.accelerators.value * package);
}

std::vector<Input> fp64_inputs(const SystemConfig& s) {
  if (!s.installation->fp64_peak) return {};
  const ListedPeakConfig& peak = *s.installation->fp64_peak;
  std::vector<Input> inputs = {
      input_of("installation.fp64_peak.processors", peak.processors),
      input_of("installation.fp64_peak.unit_flops", peak.unit_flops),
      peak.clock ? input_of("installation.fp64_peak.clock", *peak.clock)
                 : input_of("accelerator.compute.clock", s.accelerator.compute.clock)};
  return inputs;
}

/// Accelerators at their caps and processors; networks, storage and cooling are not in it.
std::optional<double> design_power(const SystemConfig& s, View view) {
  const std::optional<Fact<Watts>>& processors = s.installation->processors;
  return s.installation->systems.value * (s.accelerators.value * s.accelerator.power.cap().base() +
                                          (processors ? seen(*processors, view) : 0));
}

std::vector<Input> design_power_inputs(const SystemConfig& s) {
  std::vector<Input> inputs = {input_of("accelerator.power.tdp", s.accelerator.power.tdp)};
  if (s.installation->processors)
    inputs.push_back(input_of("installation.processors", *s.installation->processors));
  return inputs;
}

template <class T>
const T* pointer(const std::optional<T>& fact) {
  return fact ? &*fact : nullptr;
}

const Fact<FlopsPerSecond>* listed_peak(const InstallationConfig& machine) {
  return machine.fp64_peak ? pointer(machine.fp64_peak->published) : nullptr;
}

std::optional<double> cost_of_package(const SystemConfig& s, View view) {
  if (!s.installation->cost) return std::nullopt;
  return seen(*s.installation->cost, view) / s.installation->systems.value / s.accelerators.value;
}

std::vector<Input> cost_inputs(const SystemConfig& s) {
  if (!s.installation->cost) return {};
  return {input_of("installation.cost", *s.installation->cost)};
}

}  // namespace

const std::vector<Figure>& installation_figures() {
  const std::vector<Scale> watts = {{1e3, "kW"}, {1e6, "MW"}};
  static const std::vector<Figure> figures = {
      published("machine, systems", {{1, ""}}, 0, "systems",
                [](const InstallationConfig& machine) { return &machine.systems; }),
      machine_total("scale-up domain", "chips"),
      machine_total("BF16 dense", "BF16 dense"),
      machine_total("HBM capacity", "HBM capacity"),
      machine_total("HBM bandwidth", "HBM bandwidth"),
      of_machine("machine, FP64 peak of the parts", {{1e15, "PFLOPS"}}, 1, fp64_of_parts,
                 fp64_inputs),
      published("machine, FP64 peak as listed", {{1e15, "PFLOPS"}}, 1, "fp64_peak.published",
                listed_peak),
      of_machine("machine, design power of the parts", watts, 1, design_power, design_power_inputs),
      published("machine, power as published", watts, 1, "power",
                [](const InstallationConfig& machine) { return pointer(machine.power); }),
      published("machine, cost", {{1e6, "M USD"}}, 0, "cost",
                [](const InstallationConfig& machine) { return pointer(machine.cost); }),
      of_machine("machine, cost per chip", {{1, "USD"}}, 0, cost_of_package, cost_inputs)};
  return figures;
}

}  // namespace orrery
