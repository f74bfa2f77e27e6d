// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/kernels/contention.h"
#include "sim/app/pricing/calibration_files.h"
#include "sim/config/file_path.h"
#include "sim/graph/costs.h"
#include "sim/graph/transfer.h"
#include "sim/machine/kernel_model.h"
#include "sim/machine/network_calibration.h"
#include "sim/machine/system_config.h"

namespace orrery {

class TileMemo;

/// How kernels are to be priced.
struct KernelChoice {
  Fidelity fidelity = Fidelity::kAuto;
  Contention contention = {};           ///< what runs beside every kernel
  std::vector<FilePath> measured = {};  ///< operator tables whose times override the model
};

/// Whether accelerators of a system that nothing runs on are there: they idle, their host is
/// charged whole and they are paid for; or the rest of the system is somebody else's.
enum class Unused : std::uint8_t { kIdle, kAbsent };

/// Whether all groups of a transfer stay inside their system.
bool inside_a_system(const Transfer& transfer, int ranks_per_system);

/// Systems that stand ready to be asked what kernels and transfers cost: as configured, with the
/// calibrations of their accelerators and of their collectives. Immutable; everything that runs on
/// the same machine in a process may share one.
class Machine {
 public:
  /// @param nodes copies of the system, joined by its scale-out network
  /// What of it is used: one accelerator, whose links nobody asks about, or all of it.
  enum class Part { kAccelerator, kWhole };

  /// @param calibration of kernels: "auto" (what the accelerator names), "none", a name of the
  /// library or a path; with "none" collectives have none either
  /// @param part kAccelerator leaves the calibration of the collectives unread
  /// @param engine_kernels calibrations of an engine's own kernels, best first ("vllm_0_24"); see
  /// calibration_files()
  /// @throws config::ConfigError for a calibration that does not exist or cannot be read
  Machine(SystemConfig system, int nodes, std::string calibration = "auto",
          Part part = Part::kWhole, const std::vector<std::string>& engine_kernels = {});

  /// The same machine with the links to the memory of its hosts, which copies go over.
  Machine with_host_links() const;

  /// With what the calibration of the collectives says of its links and protocols.
  const SystemConfig& system() const { return system_; }
  const AcceleratorConfig& accelerator() const { return system_.accelerator; }
  int nodes() const { return nodes_; }
  /// Dies of all systems.
  int ranks() const { return system_.ranks() * nodes_; }
  /// The calibrations of its kernels.
  const CalibrationFiles& calibrations() const { return calibrations_; }
  /// The calibration of the collectives; null: none.
  const NetworkCalibration* collectives() const { return collectives_.get(); }
  /// The file that it was read from.
  const std::string& collectives_file() const { return collectives_file_; }

  /// @throws config::KeyError for tiles on an accelerator without a calibration
  void check(Fidelity fidelity) const;
  /// Prices of kernels on one rank.
  /// @param memo of tile results; may be null
  /// @throws config::ConfigError for a measured table without a row of the accelerator
  std::unique_ptr<KernelModel> kernels(const KernelChoice& choice, TileMemo* memo = nullptr) const;

  /// Device memory that a rank may use.
  /// @param reserve share that is left to contexts, buffers and fragmentation
  Bytes usable_memory(double reserve) const;

  /// The power state of the accelerator: what its configuration says, or what the kind of
  /// experiment has. Never kByKind.
  PowerState power_state(PowerState of_kind) const;

  /// Accelerators whose power and price are charged: the used ones, or all of the systems.
  /// @param used accelerators with a rank
  double charged(double used, Unused unused) const;

  /// Power of hosts, switches, NICs, storage, fans and losses of one system: its `host_power`, else
  /// `all_in_power` less the design power of all accelerators. It is taken to be drawn at any load,
  /// as NVIDIA budgets a tray of a GB300 NVL72: 1,000 W of CPUs and 900 W static besides its GPUs
  /// (Mission Control, power reservation). No value if the system has neither.
  std::optional<Watts> host_power() const;

  /// Power of all systems while their used accelerators draw `accelerators`: those, the idle power
  /// of charged accelerators without a rank, and the share of host_power() that is charged.
  /// @param used accelerators with a rank
  std::optional<Watts> system_power(Watts accelerators, double used, Unused unused) const;

  /// What the price of a transfer rests on: kAnalytic where no measured collective tells about it
  /// (no calibration of the collectives, tokens to experts, parts of different sizes, copies to
  /// hosts), kCalibrated where it is like those that were measured, else kExtrapolated.
  Provenance provenance(const Transfer& transfer) const;

  /// How many times longer a transfer takes, by draw: the spread that measured collectives of such
  /// a time have about their fit. All of a kind err together. Empty: nothing measured tells.
  std::vector<double> draws(const Transfer& transfer, Seconds time, std::int64_t seed) const;

 private:
  bool measured(const Transfer& transfer) const;

  SystemConfig system_;
  int nodes_;
  std::string calibration_;  ///< choice of the calibration: "auto", "none", a name or a path
  CalibrationFiles calibrations_;
  std::string collectives_file_;
  std::shared_ptr<const NetworkCalibration> collectives_;
};

/// The network calibration that `choice` means for a system: "none" none, a name of the library or
/// a path that one, and "auto" what the system names. Empty: none, or the system has no protocols.
/// @throws config::ConfigError for a name that does not exist
std::string network_calibration_file(const std::string& choice, const SystemConfig& system);

/// A network calibration, read once in a process.
/// @throws config::ConfigError as load_network_calibration()
std::shared_ptr<const NetworkCalibration> loaded_network_calibration(const std::string& file);

}  // namespace orrery
