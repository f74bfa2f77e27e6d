// SPDX-License-Identifier: Apache-2.0
// What holds of every collective, on random ones: all systems that ship, all algorithms and
// protocols, any ranks and sizes. ORRERY_LAW_CASES and ORRERY_LAW_SEED ask for more and for others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "models/collectives/limit.h"
#include "models/transfers/flow_model.h"
#include "sim/app/pricing/machine.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/machine/system_config.h"

namespace orrery::collective_laws_test {
namespace {

constexpr double kRounding = 1e-9;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// As experiments load it, measured parameters applied.
SystemConfig shipped(const std::string& name) {
  const config::Library& library = config::default_library();
  auto system = config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
  const std::string calibration = network_calibration_file("auto", system);
  if (!calibration.empty()) loaded_network_calibration(calibration)->apply(system);
  return system;
}

SystemConfig with_faster_links(SystemConfig system, bool inside) {
  auto& port = inside ? system.accelerator.scale_up : system.accelerator.scale_out;
  port.bandwidth.value *= 1.5;
  return system;
}

struct Case {
  SystemConfig system;
  int copies = 1;
  Transfer transfer;
  std::string algorithm, protocol;

  std::string text() const {
    return system.name + " x " + std::to_string(copies) + ", " + to_string(transfer.kind) + " of " +
           std::to_string(transfer.bytes.base()) + " B among " +
           std::to_string(transfer.groups[0].size()) + " ranks from " +
           std::to_string(transfer.groups[0].front()) + " by " + algorithm + " " + protocol;
  }
  FlowModel network(const SystemConfig& on) const {
    return FlowModel(on, copies, algorithm, protocol);
  }
};

class RandomCases {
 public:
  explicit RandomCases(std::uint64_t seed) : random_(seed) {
    for (const std::string& name : config::default_library().names("systems")) {
      SystemConfig system = shipped(name);
      if (system.ranks() > 1) systems_.push_back(std::move(system));
    }
  }

  Case next() {
    Case c;
    c.system = pick(systems_);
    const bool joins = c.system.accelerator.scale_out.present() && c.system.ranks() <= 1024;
    c.copies = joins ? 1 + static_cast<int>(below(3)) : 1;
    c.transfer.name = "law";
    c.transfer.kind = pick(std::vector<TransferKind>{
        TransferKind::kAllReduce, TransferKind::kAllGather, TransferKind::kReduceScatter,
        TransferKind::kAllToAll, TransferKind::kBroadcast, TransferKind::kReduce});
    c.transfer.bytes = Bytes(std::exp2(static_cast<double>(below(24 * 16)) / 16 + 8));
    c.transfer.groups = {group(c.system.ranks() * c.copies)};
    std::vector<std::string> algorithms = {"auto", "auto", "auto", "auto"};
    for (const auto& [name, item] : AlgorithmRegistry::items()) algorithms.push_back(name);
    c.algorithm = pick(algorithms);
    c.protocol = pick(std::vector<std::string>{"auto", "ll", "ll128", "simple"});
    return c;
  }

 private:
  /// Ranks side by side, or spread over the machine.
  std::vector<int> group(int ranks) {
    const int size = std::min(ranks, 2 + static_cast<int>(below(63)));
    const int widest = std::max(1, ranks / size);
    const int step = below(2) == 0 ? 1 : 1 + static_cast<int>(below(widest));
    const int first = static_cast<int>(below(ranks - (size - 1) * step));
    std::vector<int> members;
    for (int i = 0; i < size; ++i) members.push_back(first + i * step);
    return members;
  }
  std::uint64_t below(int count) { return random_() % static_cast<std::uint64_t>(count); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(static_cast<int>(from.size()))];
  }
  template <class T>
  T pick(std::vector<T>&& from) {
    return from[below(static_cast<int>(from.size()))];
  }

  std::mt19937_64 random_;
  std::vector<SystemConfig> systems_;
};

/// More bytes are never carried sooner in the same way.
void expect_more_bytes_take_longer(const Case& c, const FlowModel& network,
                                   const PricedTransfer& priced) {
  for (const double more : {1.001, 2.0, 16.0}) {
    Transfer larger = c.transfer;
    larger.bytes *= more;
    EXPECT_GE(network.price_as(larger, priced).isolated_time.base(),
              priced.isolated_time.base() * (1 - kRounding))
        << more << " times the bytes";
  }
}

void expect_faster_links_take_no_longer(const Case& c, const PricedTransfer& priced) {
  for (const bool inside : {true, false}) {
    const FlowModel faster = c.network(with_faster_links(c.system, inside));
    EXPECT_LE(faster.price_as(c.transfer, priced).isolated_time.base(),
              priced.isolated_time.base() * (1 + kRounding))
        << (inside ? "faster links inside systems" : "faster links between systems");
  }
}

/// No port carries more than its line rate.
void expect_the_bound_holds(const Case& c, const FlowModel& network, const PricedTransfer& priced) {
  const Collective group = network.collective(c.transfer, c.transfer.groups[0]);
  EXPECT_GE(priced.isolated_time.base(),
            least_time(group, port_rates(c.system)).base() * (1 - kRounding));
}

TEST(CollectiveLaws, HoldOnRandomCollectivesOfAllSystems) {
  const std::uint64_t seed = from_environment("ORRERY_LAW_SEED", 11);
  RandomCases cases(seed);
  for (std::uint64_t i = 0; i < from_environment("ORRERY_LAW_CASES", 200); ++i) {
    const Case c = cases.next();
    SCOPED_TRACE("seed " + std::to_string(seed) + ", case " + std::to_string(i) + ": " + c.text());
    const FlowModel network = c.network(c.system);
    const PricedTransfer priced = network.price(c.transfer);
    expect_more_bytes_take_longer(c, network, priced);
    expect_faster_links_take_no_longer(c, priced);
    expect_the_bound_holds(c, network, priced);
    if (HasFailure()) return;  // the first is enough
  }
}

Case by_choice(const std::string& system, int copies, TransferKind kind, int ranks) {
  Case c;
  c.system = shipped(system);
  c.copies = copies;
  c.algorithm = c.protocol = "auto";
  c.transfer.name = "law";
  c.transfer.kind = kind;
  c.transfer.groups = {{}};
  for (int rank = 0; rank < ranks; ++rank) c.transfer.groups[0].push_back(rank);
  return c;
}

/// Whether NCCL goes from a ring of LL among more ranks than were measured to the switches: it
/// counts on 0.6 us a hop of LL, of which the measured ones of Blackwell take 1.4 (8 B200, 1 KiB:
/// 24.9 us, of which it expects 15.0), so that it does so late where a ring has more hops.
bool leaves_the_ring_late(const Transfer& transfer, const PricedTransfer& first,
                          const PricedTransfer& second) {
  return transfer.groups[0].size() > 8 && first.algorithm == "ring" && first.protocol == "ll" &&
         second.algorithm == "nvls";
}

/// Twice the bytes do not take less of the time, from 1 KiB to 1 GiB in small steps, whatever the
/// library chooses for them.
void expect_twice_the_bytes_take_longer(Case c) {
  const FlowModel network = c.network(c.system);
  for (double power = 10; power < 30; power += 0.25) {
    c.transfer.bytes = Bytes(std::round(std::exp2(power)));
    const PricedTransfer first = network.price(c.transfer);
    Transfer larger = c.transfer;
    larger.bytes *= 2;
    const PricedTransfer second = network.price(larger);
    const PricedTransfer same =
        leaves_the_ring_late(larger, first, second) ? network.price_as(larger, first) : second;
    EXPECT_GE(same.isolated_time.base(), 0.99 * first.isolated_time.base())
        << c.text() << ": " << first.algorithm << ' ' << first.protocol << ", then "
        << same.algorithm << ' ' << same.protocol;
  }
}

// Counter-examples once, as what NCCL expects of LL between systems left out its limit (19 GB/s
// of 8 NICs with AMD's processors): 80.1 us for 1 MB among 32 A100, 77.1 for 2; 153 and 94 among
// 128; 215 and 212 for all-gathers of 8 and 16 MiB among 64; 65.9 and 57.7 for 2 and 4 MiB on 16
// H200; and steps of rings between systems their posts, by which LL lost to LL128.
TEST(CollectiveLaws, TwiceTheBytesTakeNoLessTimeWhereTheChoiceChanges) {
  using K = TransferKind;
  for (const int nodes : {2, 4, 8, 16}) {
    for (const K kind : {K::kAllReduce, K::kAllGather, K::kBroadcast})
      expect_twice_the_bytes_take_longer(by_choice("dgx_a100_40", nodes, kind, 8 * nodes));
  }
  for (const char* system : {"dgx_h200", "dgx_b200", "dgx_b300", "llama_24k"}) {
    for (const int nodes : {2, 16}) {
      for (const K kind : {K::kAllReduce, K::kAllGather})
        expect_twice_the_bytes_take_longer(by_choice(system, nodes, kind, 8 * nodes));
    }
  }
  for (const int ranks : {4, 12, 16, 72})
    expect_twice_the_bytes_take_longer(by_choice("gb300_nvl72", 1, K::kAllReduce, ranks));
}

// A counter-example once: 49 us with NVLinks of 0.9 TB/s, 51 with 1.8, as what a ring saved inside
// a system was taken off the time of the NICs.
TEST(CollectiveLaws, FasterLinksInsideDoNotSlowWhatTheNicsHoldUp) {
  Case c;
  c.system = shipped("dgx_b200");
  c.system.accelerator.scale_out.bandwidth.value = BytesPerSecond(12.5e9);
  c.copies = 2;
  c.algorithm = c.protocol = "auto";
  c.transfer.name = "law";
  c.transfer.kind = TransferKind::kReduceScatter;
  c.transfer.bytes = Bytes(1087733);
  c.transfer.groups = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
  expect_faster_links_take_no_longer(c, c.network(c.system).price(c.transfer));
}

}  // namespace
}  // namespace orrery::collective_laws_test
