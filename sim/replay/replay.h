// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/graph/costs.h"
#include "sim/graph/program.h"
#include "sim/units/time.h"

namespace orrery {

class CriticalPath;  // sim/replay/critical_path.h
class FlowNetwork;   // sim/network/flow_network.h
class Images;        // sim/graph/images.h
class Timeline;      // sim/trace/timeline.h
class Topology;      // sim/graph/topology.h

/// How transfers slow the kernels beside them.
class SlowdownModel {
 public:
  virtual ~SlowdownModel() = default;
  /// Time of a kernel beside transfers that take `taken` of its device for all of it, over its
  /// time alone: at least 1. Replay asks once for each kernel and load that meet.
  virtual double slowdown(KernelId kernel, const DeviceLoad& taken) = 0;
};

/// Sees what runs when: each end, in the order of time.
class UseObserver {
 public:
  virtual ~UseObserver() = default;
  /// A kernel of the role, or rank where ranks are replayed, ran from `begin`, launch included, to
  /// `end`.
  virtual void kernel_ran(std::uint32_t role, KernelId kernel, Picoseconds begin,
                          Picoseconds end) = 0;
  /// A transfer ran from when the last of its roles had posted it.
  virtual void transfer_ran(std::uint32_t role, TransferId transfer, Picoseconds begin,
                            Picoseconds end) = 0;
};

/// Kernels that take other times on some ranks, or at some times, than their costs say.
class KernelVariation {
 public:
  virtual ~KernelVariation() = default;
  /// Time of one run of a kernel on a rank, launch included, over that of its cost: above 0.
  /// @param run tells the runs of a rank apart: call of a block << 32, its stream and place below
  virtual double factor(int rank, KernelId kernel, std::uint64_t run) const = 0;
};

/// Where the time of a role went; the parts add up to the end of the run, to the picosecond.
struct TimeBreakdown {
  Picoseconds compute = 0;     ///< kernels, without their launch
  Picoseconds contention = 0;  ///< what they take longer because transfers run beside them
  Picoseconds exposed_communication = 0;  ///< compute stream waits for bytes in flight
  Picoseconds bubble = 0;  ///< compute stream waits for a peer that has not started to send
  Picoseconds optimizer = 0;
  Picoseconds host = 0;  ///< launch overhead, and waits for the host to enqueue
  Picoseconds idle = 0;  ///< nothing left to do
};

struct RoleResult {
  Picoseconds end = 0;  ///< time when its last operator ended
  TimeBreakdown breakdown;
  /// Time of the compute stream by block of the program: kernels, launches and waits for bytes
  /// before them; no bubbles.
  std::vector<Picoseconds> block_time;

  /// Time in which it has work of its own.
  Picoseconds busy() const {
    return breakdown.compute + breakdown.contention + breakdown.optimizer + breakdown.host;
  }
};

struct ReplayResult {
  Picoseconds end = 0;
  int last_role = 0;         ///< the role that ends last (the lowest index of those)
  std::uint64_t events = 0;  ///< ends of kernels, latencies and bytes
  std::uint64_t operators = 0;
  /// Results by role; of the rank that ends last (the first of those), where ranks are replayed.
  std::vector<RoleResult> roles;
  int last_rank = -1;                  ///< the rank that ends last of all, where ranks are replayed
  std::vector<Picoseconds> rank_busy;  ///< RoleResult::busy() by rank, where ranks are replayed
  std::vector<double> link_bytes;      ///< LinkLoad::bytes of all that was carried, by link
  std::vector<double> link_payload;    ///< and LinkLoad::payload
  std::vector<double> link_busy_s;     ///< time that it took, had the link carried nothing else
};

struct ReplayOptions {
  Timeline* timeline = nullptr;        ///< receives one span per operator, if given
  SlowdownModel* slowdowns = nullptr;  ///< null: kernels take no notice of transfers
  const Topology* topology = nullptr;  ///< names links in errors; null: they are numbered
  UseObserver* observer = nullptr;     ///< is told of all that ends, if given
  /// Every rank of every role is replayed on its own, and costs of transfers are those of their
  /// images; null: a role stands for its ranks. Outlives the replay.
  const Images* images = nullptr;
  const KernelVariation* variation = nullptr;  ///< null: kernels take what their costs say
  CriticalPath* path = nullptr;                ///< keeps what each operator waited for, if given
  /// idle_links() of the costs, for one of several replays; null: they are worked out anew.
  const FlowNetwork* links = nullptr;
};

/// Operators are left and none can start. what() names each waiting role and operator and what it
/// waits for.
class DeadlockError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A transfer stands still for good: a link that it crosses is down, and it has no other way.
/// what() names both, and since when.
class LinkDownError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The links of these costs before anything has crossed them. Merging those of 100,000 ranks takes
/// as long as a replay of a few roles.
FlowNetwork idle_links(const Costs& costs);

/// Replays a program on the SystemC kernel of this process.
/// May be called again: the elaborated model is kept, its data reloaded.
/// @throws DeadlockError, LinkDownError, std::overflow_error (time beyond 2^63 ps).
ReplayResult replay(const Program& program, const Costs& costs, const ReplayOptions& options = {});

}  // namespace orrery
