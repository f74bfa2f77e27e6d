// SPDX-License-Identifier: Apache-2.0
#include "sim/units/unit_table.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "sim/units/text.h"

namespace orrery {
namespace {

constexpr Dimension kTime{.time = 1};
constexpr Dimension kFrequency{.time = -1};
constexpr Dimension kData{.data = 1};
constexpr Dimension kWork{.work = 1};
constexpr Dimension kEnergy{.energy = 1};
constexpr Dimension kMoney{.money = 1};
constexpr Dimension kCarbon{.carbon = 1};
constexpr Dimension kPower = kEnergy - kTime;
constexpr Dimension kBandwidth = kData - kTime;
constexpr Dimension kComputeRate = kWork - kTime;

struct NamedUnit {
  std::string_view name;
  Unit unit;
};

constexpr double kBitsPerByte = 8;
constexpr double kKibi = 1024;

/// Every unit without a '/', the only table of unit names. Others are quotients of two of these.
/// Prefixes are decimal (GB = 10^9 B) unless binary (GiB = 2^30 B); b is a bit, B a byte. OPS and
/// FLOPS are operations per second, as data sheets write them.
constexpr std::array kUnits = {
    NamedUnit{"s", {kTime}},
    NamedUnit{"ms", {kTime, -3}},
    NamedUnit{"us", {kTime, -6}},
    NamedUnit{"ns", {kTime, -9}},
    NamedUnit{"ps", {kTime, -12}},
    NamedUnit{"min", {kTime, 0, 60}},
    NamedUnit{"h", {kTime, 0, 3600}},
    NamedUnit{"d", {kTime, 0, 86400}},
    NamedUnit{"y", {kTime, 0, 31'536'000}},  // 8,760 h, as costs and energy are counted
    NamedUnit{"Hz", {kFrequency}},
    NamedUnit{"kHz", {kFrequency, 3}},
    NamedUnit{"MHz", {kFrequency, 6}},
    NamedUnit{"GHz", {kFrequency, 9}},
    NamedUnit{"B", {kData}},
    NamedUnit{"KB", {kData, 3}},
    NamedUnit{"kB", {kData, 3}},
    NamedUnit{"MB", {kData, 6}},
    NamedUnit{"GB", {kData, 9}},
    NamedUnit{"TB", {kData, 12}},
    NamedUnit{"PB", {kData, 15}},
    NamedUnit{"KiB", {kData, 0, kKibi}},
    NamedUnit{"MiB", {kData, 0, kKibi* kKibi}},
    NamedUnit{"GiB", {kData, 0, kKibi* kKibi* kKibi}},
    NamedUnit{"TiB", {kData, 0, kKibi* kKibi* kKibi* kKibi}},
    NamedUnit{"PiB", {kData, 0, kKibi* kKibi* kKibi* kKibi* kKibi}},
    NamedUnit{"b", {kData, 0, 1, kBitsPerByte}},
    NamedUnit{"bit", {kData, 0, 1, kBitsPerByte}},
    NamedUnit{"Kb", {kData, 3, 1, kBitsPerByte}},
    NamedUnit{"kb", {kData, 3, 1, kBitsPerByte}},
    NamedUnit{"Mb", {kData, 6, 1, kBitsPerByte}},
    NamedUnit{"Gb", {kData, 9, 1, kBitsPerByte}},
    NamedUnit{"Tb", {kData, 12, 1, kBitsPerByte}},
    NamedUnit{"FLOP", {kWork}},
    NamedUnit{"KFLOP", {kWork, 3}},
    NamedUnit{"MFLOP", {kWork, 6}},
    NamedUnit{"GFLOP", {kWork, 9}},
    NamedUnit{"TFLOP", {kWork, 12}},
    NamedUnit{"PFLOP", {kWork, 15}},
    NamedUnit{"EFLOP", {kWork, 18}},
    NamedUnit{"GFLOPS", {kComputeRate, 9}},
    NamedUnit{"TFLOPS", {kComputeRate, 12}},
    NamedUnit{"PFLOPS", {kComputeRate, 15}},
    NamedUnit{"EFLOPS", {kComputeRate, 18}},
    NamedUnit{"GOPS", {kComputeRate, 9}},
    NamedUnit{"TOPS", {kComputeRate, 12}},
    NamedUnit{"POPS", {kComputeRate, 15}},
    NamedUnit{"pJ", {kEnergy, -12}},
    NamedUnit{"nJ", {kEnergy, -9}},
    NamedUnit{"uJ", {kEnergy, -6}},
    NamedUnit{"mJ", {kEnergy, -3}},
    NamedUnit{"J", {kEnergy}},
    NamedUnit{"kJ", {kEnergy, 3}},
    NamedUnit{"MJ", {kEnergy, 6}},
    NamedUnit{"Wh", {kEnergy, 2, 36}},
    NamedUnit{"kWh", {kEnergy, 5, 36}},
    NamedUnit{"MWh", {kEnergy, 8, 36}},
    NamedUnit{"GWh", {kEnergy, 11, 36}},
    NamedUnit{"mW", {kPower, -3}},
    NamedUnit{"W", {kPower}},
    NamedUnit{"kW", {kPower, 3}},
    NamedUnit{"MW", {kPower, 6}},
    NamedUnit{"USD", {kMoney}},
    // Masses of CO2, of CO2 equivalents (e) too, with and without a blank.
    NamedUnit{"gCO2", {kCarbon}},
    NamedUnit{"kgCO2", {kCarbon, 3}},
    NamedUnit{"tCO2", {kCarbon, 6}},
    NamedUnit{"g CO2", {kCarbon}},
    NamedUnit{"kg CO2", {kCarbon, 3}},
    NamedUnit{"t CO2", {kCarbon, 6}},
    NamedUnit{"gCO2e", {kCarbon}},
    NamedUnit{"kgCO2e", {kCarbon, 3}},
    NamedUnit{"tCO2e", {kCarbon, 6}},
    NamedUnit{"g CO2e", {kCarbon}},
    NamedUnit{"kg CO2e", {kCarbon, 3}},
    NamedUnit{"t CO2e", {kCarbon, 6}},
};

const std::vector<DimensionText>& dimension_texts() {
  static const std::vector<DimensionText> texts = {
      {kTime, "duration", {"600 ns", "1.5 ms"}, "s", {"ps", "ns", "us", "ms", "s"}},
      {kFrequency, "frequency", {"1.83 GHz", "10 /s"}, "Hz", {"Hz", "kHz", "MHz", "GHz"}},
      {kData, "data size", {"80 GB", "64 GiB"}, "B", {"B", "KB", "MB", "GB", "TB", "PB"}},
      {kWork,
       "FLOP count",
       {"2 TFLOP"},
       "FLOP",
       {"FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"}},
      {kEnergy, "energy", {"1.5 kJ"}, "J", {"pJ", "nJ", "uJ", "mJ", "J", "kJ", "MJ"}},
      {kMoney, "amount of money", {"25000 USD"}, "USD", {"USD"}},
      {kPower, "power", {"700 W", "132 kW"}, "W", {"mW", "W", "kW", "MW"}},
      {kBandwidth,
       "bandwidth",
       {"900 GB/s", "3.2 Tb/s"},
       "B/s",
       {"B/s", "KB/s", "MB/s", "GB/s", "TB/s", "PB/s"}},
      {kComputeRate,
       "compute rate",
       {"989 TFLOP/s", "1979 TOPS"},
       "FLOP/s",
       {"FLOP/s", "KFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s", "EFLOP/s"}},
      {kEnergy - kData, "energy per data", {"40 pJ/B", "5 pJ/bit"}, "J/B", {"pJ/B", "nJ/B", "J/B"}},
      {kEnergy - kWork, "energy per FLOP", {"0.5 pJ/FLOP"}, "J/FLOP", {"pJ/FLOP", "J/FLOP"}},
      {kCarbon, "mass of CO2", {"12 kg CO2", "3 t CO2"}, "gCO2", {"gCO2", "kgCO2", "tCO2"}},
      {kCarbon - kEnergy,
       "mass of CO2 per energy",
       {"400 gCO2/kWh", "35 kg CO2/MWh"},
       "gCO2/J",
       {"gCO2/kWh"}},
      {kMoney - kTime, "cost per time", {"2.5 USD/h", "20000 USD/y"}, "USD/s", {"USD/h"}},
      {Dimension{} - kEnergy, "count per energy", {"5 /J"}, "/J", {"/J"}},
  };
  return texts;
}

const Unit* find_simple(std::string_view name) {
  const auto found = std::find_if(kUnits.begin(), kUnits.end(),
                                  [&](const NamedUnit& u) { return u.name == name; });
  return found == kUnits.end() ? nullptr : &found->unit;
}

/// Quotients offered to the user: per second, hour, day and year, per byte, per bit, per FLOP, per
/// kWh and MWh.
constexpr std::array<std::string_view, 9> kDenominators = {"s",   "h",    "d",   "y",  "B",
                                                           "bit", "FLOP", "kWh", "MWh"};

}  // namespace

double Unit::in_base_units() const {
  double factor = times / over;
  for (int i = 0; i < std::abs(exponent); ++i) factor *= exponent > 0 ? 10 : 0.1;
  return factor;
}

std::optional<Unit> find_unit(std::string_view name) {
  const std::size_t slash = name.find('/');
  static constexpr Unit kCount{};  // "10 /s": so many of something
  const bool counts = slash == 0 || (slash == 1 && name[0] == '1');  // "1/s" as metrics have it
  const Unit* above = counts ? &kCount : find_simple(name.substr(0, slash));
  if (above == nullptr) return std::nullopt;
  if (slash == std::string_view::npos) return *above;
  const Unit* below = find_simple(name.substr(slash + 1));
  if (below == nullptr) return std::nullopt;
  return Unit{above->dimension - below->dimension, above->exponent - below->exponent,
              above->times * below->over, above->over * below->times};
}

const DimensionText* find_dimension(Dimension dimension) {
  const auto& texts = dimension_texts();
  const auto found = std::find_if(texts.begin(), texts.end(), [&](const DimensionText& text) {
    return text.dimension == dimension;
  });
  return found == texts.end() ? nullptr : &*found;
}

std::vector<std::string> unit_names(Dimension dimension) {
  std::vector<std::string> names;
  if (dimension == kFrequency) names = {"/s", "/min", "/h", "/d", "/y"};
  for (const NamedUnit& unit : kUnits) {
    if (unit.unit.dimension == dimension) names.emplace_back(unit.name);
    for (const std::string_view denominator : kDenominators) {
      if (unit.unit.dimension - find_simple(denominator)->dimension == dimension) {
        names.push_back(std::string(unit.name) + "/" + std::string(denominator));
      }
    }
  }
  return names;
}

}  // namespace orrery
