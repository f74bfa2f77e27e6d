// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/machine.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "models/kernels/measured_model.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/machine/collective_start.h"
#include "sim/machine/draws.h"
#include "sim/units/spelling.h"
#include "validation/calibration/operator_kernels.h"

namespace orrery {
namespace {

/// Measured collectives of one size of time: what the calibration left out of its fit. Beyond what
/// was measured the last class stands for the spread.
const ResidualClass& residuals_of(const NetworkCalibration& calibration, double time_us) {
  const auto below = [&](const ResidualClass& r) { return r.below_us > time_us; };
  const auto at = std::ranges::find_if(calibration.residuals, below);
  return at == calibration.residuals.end() ? calibration.residuals.back() : *at;
}

/// What a collective takes over its time with the floor of a start that nobody published: half of
/// the machines start in it, the others in up to the longest that is known of any.
std::vector<double> drawn_starts(const SystemConfig& system, Seconds time, std::int64_t seed) {
  const double floor = system.scale_up.launch.value / time;
  const double longest = std::max(1.0, kLongestStart / system.scale_up.launch.value);
  std::vector<double> factors = normal_draws(seed, "start of collectives " + system.id);
  for (double& factor : factors) {
    const double quantile = std::erfc(-factor / std::sqrt(2.0)) / 2;
    const double start = std::pow(longest, std::max(0.0, 2 * quantile - 1));
    factor = 1 + floor * (start - 1);
  }
  return factors;
}

}  // namespace

bool inside_a_system(const Transfer& transfer, int ranks_per_system) {
  return std::ranges::all_of(transfer.groups, [&](const auto& group) {
    return std::ranges::all_of(group, [&](int rank) {
      return rank / ranks_per_system == group.front() / ranks_per_system;
    });
  });
}

Machine::Machine(SystemConfig system, int nodes, std::string calibration, Part part,
                 const std::vector<std::string>& engine_kernels)
    : system_(std::move(system)),
      nodes_(nodes),
      calibration_(std::move(calibration)),
      calibrations_(calibration_files(calibration_, accelerator(), engine_kernels)) {
  if (part == Part::kAccelerator) return;
  assume_start(system_);
  collectives_file_ = network_calibration_file(calibration_ == "none" ? "none" : "auto", system_);
  if (collectives_file_.empty()) return;
  collectives_ = loaded_network_calibration(collectives_file_);
  collectives_->apply(system_);
}

Machine Machine::with_host_links() const {
  Machine machine = *this;
  machine.system_.host.links = true;
  return machine;
}

void Machine::check(Fidelity fidelity) const {
  require_tiles(fidelity, calibration_, accelerator());
}

std::unique_ptr<KernelModel> Machine::kernels(const KernelChoice& choice, TileMemo* memo) const {
  check(choice.fidelity);
  auto model = kernel_model(calibrations_, choice.fidelity, choice.contention, memo);
  std::vector<MeasuredKernel> measured;
  for (const FilePath& table : choice.measured) {
    const auto more = measured_kernels(loaded_table(table.path), accelerator(), *model);
    if (more.empty())
      throw config::KeyError(
          "measured", table.path + " has no row of the accelerator '" + accelerator().id + "'");
    measured.insert(measured.end(), more.begin(), more.end());
  }
  if (measured.empty()) return model;
  return std::make_unique<MeasuredModel>(std::move(model), measured);
}

Bytes Machine::usable_memory(double reserve) const {
  return accelerator().memory.capacity.value * ((1 - reserve) / accelerator().dies);
}

PowerState Machine::power_state(PowerState of_kind) const {
  const PowerState state = accelerator().power.state;
  return state == PowerState::kByKind ? of_kind : state;
}

double Machine::charged(double used, Unused unused) const {
  const double all = static_cast<double>(system_.accelerators.value) * nodes_;
  return unused == Unused::kAbsent ? used : std::max(used, all);
}

std::optional<Watts> Machine::host_power() const {
  if (system_.host_power) return system_.host_power->value;
  if (!system_.all_in_power) return std::nullopt;
  const double packages = system_.accelerators.value;
  const Watts hosts = system_.all_in_power->value - accelerator().power.tdp.value * packages;
  return std::max(Watts(0), hosts);
}

std::optional<Watts> Machine::system_power(Watts accelerators, double used, Unused unused) const {
  const std::optional<Watts> hosts = host_power();
  if (!hosts) return std::nullopt;
  const double all = charged(used, unused);
  return accelerators + accelerator().power.idle.value * (all - used) +
         *hosts * (all / system_.accelerators.value);
}

bool Machine::measured(const Transfer& transfer) const {
  const bool tokens =
      transfer.kind == TransferKind::kDispatch || transfer.kind == TransferKind::kCombine;
  return collectives_ && !tokens && transfer.pair_bytes.empty() && !transfer.host;
}

Provenance Machine::provenance(const Transfer& transfer) const {
  if (!measured(transfer)) return Provenance::kAnalytic;
  const int ranks = static_cast<int>(transfer.groups.front().size());
  const bool own = collectives_->system == system_.id && inside_a_system(transfer, system_.ranks());
  return own && collectives_->covers(transfer.bytes, ranks) ? Provenance::kCalibrated
                                                            : Provenance::kExtrapolated;
}

std::vector<double> Machine::draws(const Transfer& transfer, Seconds time,
                                   std::int64_t seed) const {
  if (start_is_assumed(system_) && !transfer.host && time > Seconds(0))
    return drawn_starts(system_, time, seed);
  if (!measured(transfer) || collectives_->residuals.empty()) return {};
  const ResidualClass& spread = residuals_of(*collectives_, time.base() * 1e6);
  std::vector<double> factors =
      normal_draws(seed, "collective " + collectives_->id + " " + to_string(transfer.kind));
  for (double& factor : factors) factor = std::exp(spread.median + spread.sigma * factor);
  return factors;
}

namespace {

constexpr const char* kFolder = "network_calibrations";

}  // namespace

std::string network_calibration_file(const std::string& choice, const SystemConfig& system) {
  if (choice == "none" || !system.scale_up.protocols) return {};
  const std::string& name = choice == "auto" ? system.scale_up.calibration : choice;
  if (name.empty()) return {};
  const config::Library& library = config::default_library();
  std::string path = library.locate(kFolder, name, "");
  if (std::filesystem::exists(path)) return path;
  const std::vector<std::string> known = library.names(kFolder);
  const std::string meant = nearest_name(name, known);
  throw config::KeyError(choice == "auto" ? "system.scale_up.calibration" : "calibration",
                         "there is no network calibration '" + name + "'", {meant, {}});
}

std::shared_ptr<const NetworkCalibration> loaded_network_calibration(const std::string& file) {
  static std::map<std::string, std::shared_ptr<const NetworkCalibration>> loaded;
  std::shared_ptr<const NetworkCalibration>& calibration = loaded[file];
  if (!calibration)
    calibration = std::make_shared<const NetworkCalibration>(load_network_calibration(file));
  return calibration;
}

}  // namespace orrery
