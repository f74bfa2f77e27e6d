// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/system_figures.h"

#include <utility>

#include "sim/app/questions/describe/figure_inputs.h"

namespace orrery {
namespace {

using Value = std::optional<double>;

// A figure of one package that a single Fact gives; `find` returns null where the package has none.
struct Quality {
  std::function<Value(const AcceleratorConfig&, View)> value;
  std::function<std::vector<Input>(const AcceleratorConfig&)> inputs;
};

template <class Find>
Quality quality(const std::string& key, Find find) {
  return {[find](const AcceleratorConfig& a, View view) -> Value {
            const auto* fact = find(a);
            return fact ? Value(seen(*fact, view)) : std::nullopt;
          },
          [find, key](const AcceleratorConfig& a) -> std::vector<Input> {
            const auto* fact = find(a);
            if (!fact) return {};
            return {input_of("accelerator." + key, *fact)};
          }};
}

Quality rate(Precision precision) {
  return quality("compute.matrix." + std::string(to_string(precision)),
                 [precision](const AcceleratorConfig& a) -> const Fact<FlopsPerSecond>* {
                   const auto found = a.compute.matrix.find(precision);
                   return found == a.compute.matrix.end() ? nullptr : &found->second;
                 });
}

Quality inference_rate(Precision precision) {
  return quality("compute.matrix_inference." + std::string(to_string(precision)),
                 [precision](const AcceleratorConfig& a) -> const Fact<FlopsPerSecond>* {
                   const auto found = a.compute.matrix_inference.find(precision);
                   return found == a.compute.matrix_inference.end() ? nullptr : &found->second;
                 });
}

const Quality kCapacity =
    quality("memory.capacity", [](const AcceleratorConfig& a) { return &a.memory.capacity; });
const Quality kBandwidth =
    quality("memory.bandwidth", [](const AcceleratorConfig& a) { return &a.memory.bandwidth; });
/// The bandwidth of ports; null where the package has none.
template <class Port>
auto bandwidth_of(Port port) {
  return [port](const AcceleratorConfig& a) -> const Fact<BytesPerSecond>* {
    return (a.*port).present() ? &(a.*port).bandwidth : nullptr;
  };
}

const Quality kScaleUp = quality("scale_up.bandwidth", bandwidth_of(&AcceleratorConfig::scale_up));
const Quality kScaleOut =
    quality("scale_out.bandwidth", bandwidth_of(&AcceleratorConfig::scale_out));

const std::vector<Scale> kFlops = {{1e12, "TFLOPS"}, {1e15, "PFLOPS"}, {1e18, "EFLOPS"}};
const std::vector<Scale> kBytes = {{1e9, "GB"}, {1e12, "TB"}, {1e15, "PB"}};
const std::vector<Scale> kBytesPerSecond = {{1e9, "GB/s"}, {1e12, "TB/s"}, {1e15, "PB/s"}};
const std::vector<Scale> kGigabits = {{1e9 / 8, "Gb/s"}};

Figure per_package(std::string label, std::vector<Scale> scales, std::optional<int> decimals,
                   const Quality& quality) {
  return {
      std::move(label), std::move(scales), decimals,
      [quality](const SystemConfig& s, View view) { return quality.value(s.accelerator, view); },
      [quality](const SystemConfig& s) { return quality.inputs(s.accelerator); }};
}

// The sum over all packages, `ways` times.
Figure total(std::string label, std::vector<Scale> scales, std::optional<int> decimals,
             const Quality& quality, double ways = 1) {
  return {std::move(label), std::move(scales), decimals,
          [quality, ways](const SystemConfig& s, View view) -> Value {
            const Value one = quality.value(s.accelerator, view);
            return one ? Value(*one * ways * seen(s.accelerators, view)) : std::nullopt;
          },
          [quality](const SystemConfig& s) { return quality.inputs(s.accelerator); }};
}

/// A figure of NICs, which several packages may share.
Figure shared_nics(Figure figure) {
  const auto all = figure.value;
  figure.value = [all](const SystemConfig& s, View view) -> Value {
    const Value value = all(s, view);
    return value ? Value(*value / s.packages_per_nic()) : std::nullopt;
  };
  return figure;
}

Value all_in_power(const SystemConfig& s, View view) {
  return s.all_in_power ? Value(seen(*s.all_in_power, view)) : std::nullopt;
}

std::vector<Input> power_input(const SystemConfig& s) {
  if (!s.all_in_power) return {};
  return {input_of("all_in_power", *s.all_in_power)};
}

// All-in power over a total.
Figure power_per(std::string label, Scale scale, int decimals, const Quality& quality) {
  const Figure divisor = total({}, {}, {}, quality);
  return {std::move(label),
          {std::move(scale)},
          decimals,
          [divisor](const SystemConfig& s, View view) -> Value {
            const Value amount = divisor.value(s, view);
            const Value power = all_in_power(s, view);
            return amount && power ? Value(*power / *amount) : std::nullopt;
          },
          [divisor](const SystemConfig& s) {
            std::vector<Input> inputs = power_input(s);
            for (Input& other : divisor.inputs(s)) inputs.push_back(std::move(other));
            return inputs;
          }};
}

}  // namespace

const std::vector<Figure>& system_figures() {
  static const std::vector<Figure> figures = {
      total("BF16 dense", kFlops, {}, rate(Precision::kBf16)),
      total("FP8 dense", kFlops, {}, rate(Precision::kFp8)),
      total("NVFP4 training", kFlops, {}, rate(Precision::kNvfp4)),
      total("NVFP4 inference", kFlops, {}, inference_rate(Precision::kNvfp4)),
      total("INT8 dense", {{1e12, "TOPS"}, {1e15, "POPS"}, {1e18, "EOPS"}}, {},
            rate(Precision::kInt8)),
      total("HBM capacity", kBytes, {}, kCapacity),
      total("HBM bandwidth", kBytesPerSecond, {}, kBandwidth),
      {"host memory capacity", kBytes, 0,  // vendors publish it to the TB
       [](const SystemConfig& s, View view) -> Value { return seen(s.host.memory, view); },
       [](const SystemConfig& s) { return std::vector{input_of("host.memory", s.host.memory)}; }},
      total("scale-up bandwidth, one way", kGigabits, 0, kScaleUp),
      total("scale-up bandwidth, both ways", kBytesPerSecond, {}, kScaleUp, 2),
      {"scale-up domain",
       {{1, ""}},
       0,
       [](const SystemConfig& s, View view) -> Value { return seen(s.accelerators, view); },
       [](const SystemConfig& s) { return std::vector{input_of("accelerators", s.accelerators)}; }},
      shared_nics(total("scale-out bandwidth, one way", kGigabits, 0, kScaleOut)),
      {"all-in power", {{1, "W"}}, 0, all_in_power, power_input},
      power_per("all-in power per BF16 dense", {1e-12, "W/TFLOP"}, 2, rate(Precision::kBf16)),
      power_per("all-in power per HBM bandwidth", {1e-12, "W per TB/s"}, 1, kBandwidth),
      power_per("all-in power per HBM capacity", {1e-9, "kW/TB"}, 1, kCapacity)};
  return figures;
}

const std::vector<Figure>& package_figures() {
  static const std::vector<Figure> figures = {
      per_package("BF16 dense", {{1e12, "TFLOPS"}}, 0, rate(Precision::kBf16)),
      per_package("HBM capacity", {{1e9, "GB"}}, 0, kCapacity),
      per_package("HBM bandwidth", {{1e12, "TB/s"}}, 1, kBandwidth),
      per_package("scale-up bandwidth, one way", kGigabits, 0, kScaleUp),
      shared_nics(per_package("scale-out bandwidth, one way", kGigabits, 0, kScaleOut))};
  return figures;
}

}  // namespace orrery
