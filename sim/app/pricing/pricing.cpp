// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/pricing.h"

#include <algorithm>
#include <cstdint>

#include "sim/graph/executions.h"
#include "sim/machine/clock.h"
#include "sim/machine/limits.h"

namespace orrery {
namespace {

/// Energy per FLOP; where a precision has none of its own, that of the widest format that has (an
/// upper bound).
JoulesPerFlop matrix_energy(const AcceleratorConfig& accelerator, Precision precision) {
  if (const auto* energy = find_precision(accelerator.energy.matrix, precision))
    return energy->value;
  JoulesPerFlop most;
  for (const auto& [name, energy] : accelerator.energy.matrix) most = std::max(most, energy.value);
  return most;
}

/// FLOPs that the vector lanes have energy for. Steps of a softmax (maximum, difference,
/// exponential, sum, quotient) are an instruction of one FLOP each; `energy.vector` is that of a
/// multiply-add, over its two.
Flops vector_operations(const Kernel& kernel) {
  constexpr double kSteps = 5;
  return kernel.vector_flops + kernel.exponentials * kSteps;
}

/// At the voltage of its clock.
void add_kernel(EnergyUse& use, const Kernel& kernel, const KernelCost& cost,
                const AcceleratorConfig& accelerator, double runs) {
  const EnergyUse run = run_energy(kernel, cost, accelerator);
  const double core = runs * energy_of_voltage(accelerator, kernel.precision, cost.clock);
  use.busy += run.busy * runs;
  use.matrix += run.matrix * core;
  use.shared += run.shared * core;
  use.vector += run.vector * core;
  use.cache += run.cache * core;
  use.memory += run.memory * runs;
}

void add_kernels(EnergyUse& use, const Program& program, const PricedProgram& priced,
                 const Role& role, const std::vector<std::uint64_t>& counts,
                 const AcceleratorConfig& accelerator) {
  const double ranks = static_cast<double>(role.ranks.size());
  each_run(counts, [&](std::size_t id, std::uint64_t runs) {
    add_kernel(use, program.kernels[id], priced.costs.kernels[id], accelerator,
               static_cast<double>(runs) * ranks);
  });
}

/// Bytes that the memory gives one rank in a kernel. Bytes that move faster than the achievable
/// rate came from the last cache, but no more than it can hold. A what-if with a faster memory
/// leaves there what the kernel's model finds there.
Bytes from_memory(const Kernel& kernel, const KernelCost& cost, const AcceleratorConfig& a) {
  const Bytes moved = kernel.read + kernel.written;
  if (cost.duration == 0 || !a.cache) return moved;
  const auto reached = [&](const MemoryConfig& memory) {
    return memory.bandwidth.value * (a.kernel.memory_efficiency.value / a.dies) *
           to_seconds(cost.duration - cost.launch);
  };
  const Bytes least = least_from_memory(kernel, a);
  const Bytes given = std::min(moved, std::max(reached(a.memory), least));
  if (!a.memory.sold) return given;
  return std::min(given, std::max({reached(*a.memory.sold), least, cost.memory.value_or(moved)}));
}

/// Kernels are priced as they are measured, in graphs; in a stream each takes longer to start, and
/// waits until the host has enqueued it.
void launch_in_stream(const LaunchConfig& launch, const std::vector<Kernel>& kernels,
                      const AcceleratorConfig& accelerator, Costs& costs) {
  const Seconds graph = launch.graph ? launch.graph->value : launch.stream.value;
  const Picoseconds longer = to_picoseconds(std::max(Seconds(0), launch.stream.value - graph));
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    KernelCost& cost = costs.kernels[i];
    const bool beside = kernels[i].kind == KernelClass::kGroupedGemm;
    const Picoseconds all =
        beside ? longer : longer * static_cast<Picoseconds>(kernels[i].launches);
    cost.launch += all;
    cost.duration += all;
    cost.bound = limit_of(kernels[i], cost, accelerator).bound;
  }
  costs.enqueue = to_picoseconds(launch.host.value);
}

/// As long as the software's kernel takes.
KernelCost at_rate(const Kernel& kernel, KernelCost cost) {
  if (kernel.rate == 1) return cost;
  const auto body = static_cast<double>(cost.duration - cost.launch);
  cost.duration = cost.launch + static_cast<Picoseconds>(body / kernel.rate);
  return cost;
}

/// Without what the work before the kernel hides of its launch.
KernelCost started(const Kernel& kernel, const AcceleratorConfig& accelerator, KernelCost cost) {
  Picoseconds hidden = 0;
  if (kernel.start == KernelStart::kWithin) hidden = cost.launch;
  const std::optional<LaunchConfig>& launch = accelerator.launch;
  if (kernel.start == KernelStart::kEarly && launch && launch->dependent)
    hidden = std::min(cost.launch, to_picoseconds(launch->dependent->value));
  cost.launch -= hidden;
  cost.duration -= hidden;
  return cost;
}

/// With the latency of all launches that the kernel stands for, and what the host has to do.
KernelCost launched(const Kernel& kernel, KernelCost cost) {
  if (kernel.kind != KernelClass::kGroupedGemm) {
    const Picoseconds more = cost.launch * static_cast<Picoseconds>(kernel.launches - 1);
    cost.launch += more;
    cost.duration += more;
  }
  cost.issue = to_picoseconds(kernel.issue);
  cost.host_waits = kernel.host_waits;
  return cost;
}

/// Energy of busy units of one rank (PowerConfig::busy) while a kernel of that duration runs behind
/// its launch, at a share of the boost clock.
Joules busy_energy(const KernelCost& cost, Picoseconds duration, double share,
                   const AcceleratorConfig& accelerator) {
  const Seconds body = to_seconds(std::max<Picoseconds>(0, duration - cost.launch));
  return busy_power(accelerator, share) * body / static_cast<double>(accelerator.dies);
}

}  // namespace

KernelCost in_step(const Kernel& kernel, const AcceleratorConfig& accelerator,
                   const KernelCost& alone) {
  return launched(kernel, started(kernel, accelerator, at_rate(kernel, alone)));
}

PricedProgram price(const Program& program, const AcceleratorConfig& accelerator,
                    const KernelModel& model, const Network& network) {
  PricedProgram priced;
  const auto prices = model.on(accelerator);
  for (const Kernel& kernel : program.kernels)
    priced.costs.kernels.push_back(in_step(kernel, accelerator, prices->cost(kernel)));
  if (accelerator.launch && accelerator.launch->mode == LaunchMode::kStream)
    launch_in_stream(*accelerator.launch, program.kernels, accelerator, priced.costs);
  for (const Transfer& transfer : program.transfers) {
    priced.transfers.push_back(network.price(transfer));
    priced.costs.transfers.push_back(priced.transfers.back().cost);
  }
  network.fill_links(priced.costs);
  return priced;
}

namespace {

/// A device that took a given time for a kernel has kept its cap meanwhile.
EnergyUse within_cap(EnergyUse use, const Kernel& kernel, const KernelCost& cost,
                     const AcceleratorConfig& accelerator) {
  const Joules most = (accelerator.power.cap() - accelerator.power.floor()) *
                      to_seconds(cost.duration) / static_cast<double>(accelerator.dies);
  const double core = energy_of_voltage(accelerator, kernel.precision, cost.clock);
  const Joules all = use.core() * core + use.memory + use.busy;
  if (all <= most) return use;
  const double share = most / all;
  for (Joules* part : {&use.busy, &use.matrix, &use.vector, &use.memory, &use.cache, &use.shared})
    *part *= share;
  return use;
}

void scale(double factor, LinkLoads& loads) {
  loads.change([factor](LinkLoad& load) {
    load.bytes *= factor;
    load.payload *= factor;
  });
}

}  // namespace

void scale_transfers(double factor, PricedProgram& priced) {
  for (TransferCost& cost : priced.costs.transfers) {
    cost.latency = to_picoseconds(to_seconds(cost.latency) * factor);
    cost.image *= factor;
    scale(factor, cost.loads);
  }
  for (LinkEvent& event : priced.costs.link_events) {
    for (LinkEvent::Reroute& reroute : event.reroutes) {
      reroute.image *= factor;
      scale(factor, reroute.loads);
    }
  }
  for (PricedTransfer& transfer : priced.transfers) {
    transfer.isolated_time *= factor;
    transfer.bytes.scale_up *= factor;
    transfer.bytes.scale_out *= factor;
  }
}

EnergyUse run_energy(const Kernel& kernel, const KernelCost& cost,
                     const AcceleratorConfig& accelerator) {
  const EnergyConfig& energy = accelerator.energy;
  // Of 2:4 sparse weights, which are counted as if dense, half the products are computed.
  const double computed = kernel.weights.sparse ? 0.5 : 1;
  const Joules matrix = kernel.matrix_flops * matrix_energy(accelerator, kernel.precision) *
                        (computed * cost.computed);
  const Bytes moved = kernel.read + kernel.written;
  const Bytes memory = from_memory(kernel, cost, accelerator);
  EnergyUse use;
  use.shared = std::min(matrix, shared_reads(kernel, accelerator) * energy.shared.value);
  use.matrix = matrix - use.shared;
  use.vector = vector_operations(kernel) * cost.computed * energy.vector.value;
  use.memory = memory * (energy.memory.value + energy.transport.value);
  use.cache = std::max(Bytes(), std::max(cost.cache, moved) - memory) * energy.cache.value;
  use.busy = busy_energy(cost, cost.duration, cost.clock, accelerator);
  return cost.fixed ? within_cap(use, kernel, cost, accelerator) : use;
}

EnergyUse transfer_energy(const PricedTransfer& transfer, const AcceleratorConfig& accelerator) {
  EnergyUse use;
  use.scale_up = transfer.bytes.scale_up * accelerator.energy.scale_up.value;
  use.scale_out = transfer.bytes.scale_out * accelerator.energy.scale_out.value;
  return use;
}

std::vector<Joules> transfer_energies(const Program& program, const PricedProgram& priced,
                                      const AcceleratorConfig& accelerator) {
  std::vector<Joules> energies;
  for (std::size_t id = 0; id < program.transfers.size(); ++id) {
    std::size_t ranks = 0;
    for (const std::vector<int>& group : program.transfers[id].groups) ranks += group.size();
    const Joules all = transfer_energy(priced.transfers[id], accelerator).total();
    energies.push_back(all / static_cast<double>(std::max<std::size_t>(1, ranks)));
  }
  return energies;
}

EnergyUse kernel_energy(const std::vector<Kernel>& kernels, const std::vector<KernelCost>& costs,
                        const AcceleratorConfig& accelerator) {
  EnergyUse use;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    use.idle += accelerator.power.floor() * to_seconds(costs[i].duration) / accelerator.dies;
    add_kernel(use, kernels[i], costs[i], accelerator, 1);
  }
  return use;
}

Bytes shared_reads(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  if (!accelerator.core || !accelerator.core->matrix_tile) return {};
  // Instructions of fewer rows read registers, which a warp fills for a tile of 64 x 64.
  constexpr int kOfWarp = 64;
  const MatrixTileConfig& tile = *accelerator.core->matrix_tile;
  const double sides = 1.0 / std::max(kOfWarp, tile.rows) + 1.0 / std::max(kOfWarp, tile.columns);
  return Bytes(kernel.matrix_flops.base() * element_bytes(kernel.precision) * sides / 2);
}

EnergyUse step_energy(const Program& program, const PricedProgram& priced,
                      const AcceleratorConfig& accelerator, Seconds step) {
  EnergyUse use;
  const double packages = static_cast<double>(program.ranks) / accelerator.dies;
  use.idle = accelerator.power.floor() * step * packages;
  // A collective that several roles meet for happens once, with the traffic of all its groups.
  std::vector<double> runs(program.transfers.size());
  for (const Role& role : program.roles) {
    const ExecutionCounts counts = count_executions(program, role);
    add_kernels(use, program, priced, role, counts.kernels, accelerator);
    for (std::size_t id = 0; id < runs.size(); ++id) {
      const Transfer& transfer = program.transfers[id];
      const bool message = transfer.kind == TransferKind::kSendReceive;
      runs[id] += static_cast<double>(counts.transfers[id]) / (message ? 1 : transfer.participants);
    }
  }
  for (std::size_t id = 0; id < runs.size(); ++id) {
    const EnergyUse once = transfer_energy(priced.transfers[id], accelerator);
    use.scale_up += once.scale_up * runs[id];
    use.scale_out += once.scale_out * runs[id];
  }
  return use;
}

}  // namespace orrery
